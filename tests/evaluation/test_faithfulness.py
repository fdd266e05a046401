import json

import pytest
import torch

import spit
from spit.attribution import Flow, RandomControl, occlude, rank_pixels
from spit.data.crops import central_square
from spit.evaluation.answers import Setup
from spit.evaluation.faithfulness import (
    CURVE,
    QUANTILES,
    Faithfulness,
    evaluate,
    plain_folder,
    probe,
    sheet,
    summarize,
)

SETUP = Setup(size=32, batch=4)


def faithfulness(method="flow", model="m", whole=(0.9, 0.5), removed=0.5, kept=0.2, shares=QUANTILES):
    rows = torch.tensor(whole, dtype=torch.float64)
    scale = rows[:, None].expand(-1, len(shares))
    return Faithfulness(model, "superpixel", method, tuple(shares), rows, rows * 0.1, scale * removed, scale * kept)


def test_the_metrics_by_hand():
    """Probability .8; without the most important .7, .6, .4, .1 is left; with nothing but them .1, .2, .5, .8."""
    removed, kept = (torch.tensor([row], dtype=torch.float64) for row in ([0.7, 0.6, 0.4, 0.1], [0.1, 0.2, 0.5, 0.8]))
    whole, blank = torch.tensor([0.8]).double(), torch.tensor([0.05]).double()
    result = Faithfulness("m", "patch", "flow", QUANTILES, whole, blank, removed, kept)
    assert result.comprehensiveness() == pytest.approx([0.8 - 0.45], abs=1e-6)
    assert result.sufficiency() == pytest.approx([0.8 - 0.4], abs=1e-6)
    shares, left = result.deletion()
    assert shares == [0, 0.01, 0.05, 0.2, 0.5, 1]
    assert left == pytest.approx([0.8, 0.7, 0.6, 0.4, 0.1, 0.05], abs=1e-6)
    assert result.insertion()[1] == pytest.approx([0.05, 0.1, 0.2, 0.5, 0.8, 0.8], abs=1e-6)


def test_further_shares_draw_curves_and_leave_the_metrics():
    shares = sorted((*QUANTILES, *CURVE))
    assert faithfulness(shares=shares).comprehensiveness() == pytest.approx(faithfulness().comprehensiveness())


def test_probing_is_the_definition(subject, photo):
    model = subject("superpixel").model
    pixels = torch.stack([photo(name, 32) for name in ("coffee", "chelsea")])
    records = probe(model, Flow(), pixels, (0.2, 0.5), SETUP)
    for image, record in zip(pixels, records, strict=True):
        with torch.no_grad():
            chances = model(image[None]).softmax(1)[0]
            label = int(chances.argmax())
            ranks = rank_pixels(spit.explain(model, image, "flow"))
            expected = [[float(model(occlude(image[None], ranks, share, keep)).softmax(1)[0, label])
                         for share in shares] for keep, shares in ((False, (1.0, 0.2, 0.5)), (True, (0.2, 0.5)))]
        assert record["class"] == label
        assert record["whole"] == pytest.approx(float(chances[label]), abs=1e-5)
        assert [record["blank"], *record["removed"]] == pytest.approx(expected[0], abs=1e-5)
        assert record["kept"] == pytest.approx(expected[1], abs=1e-5)


def test_batches_do_not_matter_and_a_stopped_run_goes_on(subject, labelled, tmp_path):
    folder = plain_folder(labelled).spread(5)
    cases = [(subject("patch", size=8), method) for method in (Flow(), RandomControl())]
    seen = []
    journal = tmp_path / "images.jsonl"
    first = evaluate(SETUP, cases, folder, journal, lambda *state: seen.append(state))
    assert seen[-1] == ("small-patch, random", 10, 10)
    lines = journal.read_text().splitlines()
    assert len(lines) == 10
    assert json.loads(lines[0])["method"] == "flow"
    journal.write_text("\n".join(lines[:7]) + "\n" + lines[7][:20])
    again = evaluate(Setup(size=32, batch=1), cases, folder, journal)
    assert len(journal.read_text().splitlines()) == 10
    for one, other in zip(first, again, strict=True):
        for name in ("whole", "blank", "removed", "kept"):
            torch.testing.assert_close(getattr(one, name), getattr(other, name), atol=1e-5, rtol=1e-4)
    evaluate(SETUP, [(cases[0][0], Flow(strength=0.5))], folder, journal)
    assert len(journal.read_text().splitlines()) == 15  # another λ is another case


def test_the_square_is_what_classification_sees(subject, labelled):
    folder = plain_folder(labelled).spread(1)
    own = subject("patch", size=8)
    [result] = evaluate(SETUP, [(own, Flow())], folder)
    square = central_square(spit.load_image(folder.images[0].path), 32)
    with torch.no_grad():
        assert float(result.whole[0]) == pytest.approx(float(own.model(square[None]).softmax(1).max()), abs=1e-5)


def test_tests_and_table():
    rows = summarize([faithfulness("lime", whole=(0.9, 0.5)), faithfulness("flow", removed=0.1, kept=0.5),
                      faithfulness("random", removed=0.9, kept=0.1)])
    lime, flow, control = rows
    assert flow.tests["comprehensiveness > lime"].t > 0
    assert flow.tests["sufficiency < random"].t > 0
    assert set(lime.tests) == {"comprehensiveness > random", "sufficiency < random"}
    assert set(control.tests) == {"comprehensiveness > lime", "sufficiency < lime"}
    assert flow.paper == (0.259, 0.558)
    assert control.paper is None
    table = sheet(rows, "about").markdown()
    assert "| attribution | m Comp ↑ | m Suff ↓ |" in table
    assert "| flow | 0.630 ± 0.353; paper 0.259 | 0.350 ± 0.196; paper 0.558 |" in table
    assert "| flow against lime | t = " in table
    assert "random against lime" not in table


def test_models_stand_side_by_side():
    rows = summarize([faithfulness("flow", "a"), faithfulness("rollout", "b")])
    table = sheet(rows, "").markdown()
    assert "| attribution | a Comp ↑ | a Suff ↓ | b Comp ↑ | b Suff ↓ |" in table
    assert "|  |  | 0.350" in table  # b has no flow, a no rollout


def test_errors(subject, labelled, tmp_path):
    with pytest.raises(spit.ImageError, match="nowhere"):
        plain_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="without a head"):
        evaluate(SETUP, [(subject(classes=0), Flow())], plain_folder(labelled))
