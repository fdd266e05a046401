import pytest
import torch
from torch import nn

from spit.errors import WeightsError
from spit.training.recipe import Optimization
from spit.training.state import State
from spit.training.task import Group, decay_groups


def made(average: float = 0.5, clip: float = 1.0) -> tuple[nn.Module, State]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    asked = Optimization(betas=(0.9, 0.99), weight_decay=0.1, ema=average, clip=clip)
    return module, State(module, decay_groups(dict(module.named_parameters())), asked)


def backward(module: nn.Module, factor: float = 1.0) -> None:
    (module(torch.linspace(-1, 1, 6).view(2, 3)).square().sum() * factor).backward()


def test_a_step_is_adamw_with_clipping() -> None:
    module, state = made(clip=0.3)
    torch.manual_seed(0)
    other = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    matrices = [p for p in other.parameters() if p.ndim == 2]
    vectors = [p for p in other.parameters() if p.ndim == 1]
    plain = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                              betas=(0.9, 0.99), eps=1e-7, fused=False)
    for step, rate in enumerate((0.1, 0.05, 0.02)):
        backward(module)
        assert state.update(rate, step) == 1
        for group in plain.param_groups:
            group["lr"] = rate
        backward(other)
        nn.utils.clip_grad_norm_(other.parameters(), 0.3)
        plain.step()
        plain.zero_grad()
    for mine, right in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-6)


def test_groups() -> None:
    module, _ = made()
    deep, flat = decay_groups(dict(module.named_parameters()), rate=0.5)
    assert (set(deep.parameters), deep.decay, deep.rate) == ({"0.weight", "2.weight"}, True, 0.5)
    assert not flat.decay
    assert len(flat.parameters) == 4
    with pytest.raises(ValueError, match="expected every parameter in one group"):
        State(module, [deep, Group(deep.parameters)], Optimization())


@pytest.mark.parametrize("clip", [0.0, 1.0])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_step_that_is_no_number_changes_nothing(bad: float, clip: float) -> None:
    module, state = made(clip=clip)
    backward(module)
    state.update(0.1, 0)
    before = {name: tensor.clone() for name, tensor in state.tensors().items() if not name.startswith("average")}
    backward(module, bad)
    assert state.update(0.1, 1) == 0
    assert all(torch.equal(state.tensors()[name], tensor) for name, tensor in before.items())
    backward(module)
    assert state.update(0.1, 2) == 1
    assert not torch.equal(state.tensors()["module.0.weight"], before["module.0.weight"])


def test_restoring_is_exact() -> None:
    module, state = made()
    for step in range(3):
        backward(module)
        state.update(0.1, step)
    kept = {name: tensor.clone() for name, tensor in state.tensors().items()}
    other, again = made()
    again.restore(kept)
    for one, two in ((module, state), (other, again)):
        backward(one)
        two.update(0.1, 3)
    assert all(torch.equal(again.tensors()[name], tensor) for name, tensor in state.tensors().items())
    with pytest.raises(WeightsError, match=r"of another model or task.*: average\.0\.weight is missing"):
        again.restore({name: tensor for name, tensor in kept.items() if not name.startswith("average")})
    with pytest.raises(WeightsError, match=r"module.0.weight expected \(4, 3\), got \(1,\)"):
        again.restore({**kept, "module.0.weight": torch.zeros(1)})


def test_the_average() -> None:
    module, state = made(average=0.5, clip=0.0)
    start = module[0].weight.detach().clone()  # type: ignore[index]
    backward(module)
    state.update(0.1, 0)
    now = module[0].weight.detach().clone()  # type: ignore[index]
    with state.averaged():
        torch.testing.assert_close(module[0].weight, 0.1 * start + 0.9 * now)  # type: ignore[index]  # (1 + 0)/(10 + 0)
    assert torch.equal(module[0].weight, now)  # type: ignore[index]
    _, none = made(average=0)
    with none.averaged():
        assert not any(name.startswith("average") for name in none.tensors())
