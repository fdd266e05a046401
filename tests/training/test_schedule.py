import pytest

from spit.training.schedule import Schedule


def test_up_and_down() -> None:
    rate = Schedule(start=1e-5, most=3e-3, least=1e-6, warmup=10, total=110)
    assert rate(0) == pytest.approx(1e-5)
    assert rate(5) == pytest.approx((1e-5 + 3e-3) / 2)  # half a cosine, not a line, but the same in the middle
    assert rate(2) < 1e-5 + 0.2 * 3e-3
    assert rate(10) == pytest.approx(3e-3)
    assert rate(60) == pytest.approx((3e-3 + 1e-6) / 2)
    assert rate(110) == pytest.approx(1e-6)
    rates = [rate(step) for step in range(110)]
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_without_a_part() -> None:
    assert Schedule(1e-5, 1.0, 0.0, 0, 4)(0) == 1
    assert Schedule(0.0, 1.0, 0.0, 4, 4)(2) == pytest.approx(0.5)
