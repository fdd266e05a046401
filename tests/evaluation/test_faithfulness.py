import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import spit
from spit.attribution import Flow, Lime, RandomControl, occlude, rank_pixels
from spit.data.crops import central_square
from spit.drawing.plots import png_of
from spit.evaluation.faithfulness import CURVE, FaithfulnessCase, FaithfulnessProtocol, Methods, cases_of
from spit.evaluation.faithfulness_table import QUANTILES, Faithfulness, draw_curves, summarize
from spit.evaluation.runner import Runner
from spit.evaluation.samples import find_images, spread


def faithfulness(method="flow", model="m", whole=(0.9, 0.5), removed=0.5, kept=0.2, shares=QUANTILES):
    rows = torch.tensor(whole, dtype=torch.float64)
    scale = rows[:, None].expand(-1, len(shares))
    return Faithfulness(model, "superpixel", method, tuple(shares), rows, rows * 0.1, scale * removed, scale * kept,
                        [0.25, 0.26][: len(whole)])


def test_the_metrics_by_hand():
    """Probability .8; without the most important .7, .6, .4, .1 is left; with nothing but them .1, .2, .5, .8."""
    removed, kept = (torch.tensor([row], dtype=torch.float64) for row in ([0.7, 0.6, 0.4, 0.1], [0.1, 0.2, 0.5, 0.8]))
    whole, blank = torch.tensor([0.8]).double(), torch.tensor([0.05]).double()
    result = Faithfulness("m", "patch", "flow", QUANTILES, whole, blank, removed, kept, [0.1])
    assert result.comprehensiveness() == pytest.approx([0.8 - 0.45], abs=1e-6)
    assert result.sufficiency() == pytest.approx([0.8 - 0.4], abs=1e-6)
    assert summarize([result])[0].shares == [0, 0.01, 0.05, 0.2, 0.5, 1]
    assert summarize([result])[0].deletion == pytest.approx([0.8, 0.7, 0.6, 0.4, 0.1, 0.05], abs=1e-6)
    assert summarize([result])[0].insertion == pytest.approx([0.05, 0.1, 0.2, 0.5, 0.8, 0.8], abs=1e-6)
    assert summarize([result])[0].further.keys() == {"seconds"}  # four shares are too few for an area


def test_areas_by_hand():
    """A curve that falls in a line from 1 to 0 has the area ½; one that stays at .9 until half, more."""
    shares = tuple(sorted((*QUANTILES, *CURVE)))
    line = 1 - torch.tensor([shares], dtype=torch.float64)
    whole, blank = torch.ones(1).double(), torch.zeros(1).double()
    result = Faithfulness("m", "patch", "flow", shares, whole, blank, line, line.flip(1) * 0 + 0.9, [0.1])
    figures = result.figures()
    assert figures["deletion"] == pytest.approx([0.5])
    assert figures["insertion"] == pytest.approx([0.9 * 0.89 + 0.01 * 0.45 + 0.1 * 0.95])


def test_further_shares_draw_curves_and_leave_the_metrics():
    shares = sorted((*QUANTILES, *CURVE))
    assert faithfulness(shares=shares).comprehensiveness() == pytest.approx(faithfulness().comprehensiveness())


def table(rows):
    return FaithfulnessProtocol(Path("data"), [], []).sheets(rows)[0].markdown()


def test_probing_is_the_definition(predictor, photo):
    own = predictor("superpixel")
    model = own.model
    pixels = torch.stack([photo(name, 32) for name in ("coffee", "chelsea")])
    records = FaithfulnessCase(own, Flow(), (0.2, 0.5)).run(pixels, Runner(batch=4))
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


def test_batches_do_not_matter_and_a_stopped_run_resumes(predictor, labelled, tmp_path):
    samples = spread(find_images(labelled), 5)
    own = predictor("patch", size=8)
    protocol = FaithfulnessProtocol(labelled, samples, [FaithfulnessCase(own, Flow()),
                                                        FaithfulnessCase(own, RandomControl())])
    seen = []
    journal = tmp_path / "images.jsonl"
    with Runner(journal, lambda *state: seen.append(state), batch=4) as runner:
        first = runner.rows(protocol)
    assert seen[-1] == ("small-patch, random", 10, 10)
    lines = journal.read_text().splitlines()
    assert len(lines) == 10
    assert json.loads(lines[0])["method"] == "flow"
    journal.write_text("\n".join(lines[:7]) + "\n" + lines[7][:20])
    with Runner(journal, batch=1) as runner:
        again = runner.rows(protocol)
    assert (runner.resumed, len(journal.read_text().splitlines())) == (7, 10)
    for one, other in zip(first, again, strict=True):
        assert one.deletion == pytest.approx(other.deletion, abs=1e-5)
        assert one.insertion == pytest.approx(other.insertion, abs=1e-5)
    with Runner(journal) as runner:
        runner.rows(FaithfulnessProtocol(labelled, samples, [FaithfulnessCase(own, Flow(strength=0.5))]))
    assert len(journal.read_text().splitlines()) == 15  # another λ is another case


def test_the_square_is_what_classification_sees(predictor, labelled):
    [sample] = spread(find_images(labelled), 1)
    own = predictor("patch", size=8)
    [record] = Runner().answers(FaithfulnessCase(own, Flow()), [sample])
    square = central_square(spit.load_image(sample.image), 32)
    with torch.no_grad():
        assert record["whole"] == pytest.approx(float(own.model(square[None]).softmax(1).max()), abs=1e-5)


def test_cases_are_models_with_methods(predictor):
    cases = cases_of(Methods(), [predictor("patch"), predictor()])
    assert [case.name for case in cases] == [f"small-{kind}, {name}" for kind in ("patch", "superpixel")
                                             for name in ("relevance", "flow", "random")]
    assert len(cases[0].shares) == 11
    assert cases_of(Methods(measure=("comp",)), [predictor("patch")])[0].shares == QUANTILES
    for name in ("road", "saco", "randomization", "pointing"):
        with pytest.raises(ValueError, match="Quantus"):
            Methods(measure=("comp", name))


def test_images_of_few_regions_are_dropped_for_all_methods(predictor, labelled, tmp_path):
    """SLIC finds one region in narrow stripes; 37 pixels are cropped to 32 without resizing."""
    stripes = np.broadcast_to(np.arange(37) % 2 * 255, (37, 37)).astype(np.uint8)
    Image.fromarray(stripes).convert("RGB").save(tmp_path / "stripes.png")
    samples = [*spread(find_images(labelled), 3), *find_images(tmp_path)]
    own = predictor("patch", size=8)
    cases = [FaithfulnessCase(own, Flow()), FaithfulnessCase(own, Lime(samples=4))]
    protocol = FaithfulnessProtocol(labelled, samples, cases)
    runner = Runner()
    report = runner.evaluate(protocol)
    assert [row.images for row in report.rows] == [3, 3]
    document = report.document()
    assert (document["images"], document["dropped"], document["dropped_images"]) == (4, 1, ["stripes.png"])
    assert "; dropped 1;" in report.head
    flow = runner.rows(FaithfulnessProtocol(labelled, samples, cases[:1]))
    assert flow[0].images == 4  # without LIME there are no regions to count
    kept = runner.rows(FaithfulnessProtocol(labelled, samples[:3], cases[:1]))
    assert kept[0].deletion == report.rows[0].deletion
    with pytest.raises(ValueError, match="SLIC finds 5 regions, got none; measure without lime"):
        runner.rows(FaithfulnessProtocol(labelled, samples[3:], cases))


def test_curves_are_drawn():
    pytest.importorskip("matplotlib")
    rows = summarize([faithfulness("flow", "a"), faithfulness("random", "b")])
    image = Image.open(io.BytesIO(png_of(draw_curves(rows, "title"))))
    assert image.width > 1000


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
    found = table(rows)
    assert "| attribution | m Comp ↑ | m Suff ↓ |" in found
    assert "| flow | 0.630 ± 0.353; paper 0.259 | 0.350 ± 0.196; paper 0.558 |" in found
    assert "| flow against lime | t = " in found
    assert "random against lime" not in found


def test_times_have_no_interval():
    [_, further] = FaithfulnessProtocol(Path("data"), [], []).sheets(summarize([faithfulness()]))
    assert "| flow | 0.255 |" in further.markdown()


def test_models_stand_side_by_side():
    rows = summarize([faithfulness("flow", "a"), faithfulness("rollout", "b")])
    found = table(rows)
    assert "| attribution | a Comp ↑ | a Suff ↓ | b Comp ↑ | b Suff ↓ |" in found
    assert "|  |  | 0.350" in found  # b has no flow, a no rollout


def test_a_model_without_classes(predictor, labelled):
    with pytest.raises(ValueError, match="without a head"):
        FaithfulnessProtocol(labelled, [], [FaithfulnessCase(predictor(classes=0), Flow())])
