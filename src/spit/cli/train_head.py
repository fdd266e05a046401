"""``spit train-head``: train a token head for saliency, without any mask."""

from dataclasses import dataclass

from spit.cli.console import print_json, show, shown, waiting
from spit.cli.measuring import Data, Evaluating
from spit.cli.options import Models, Output, Running
from spit.options import Options, same
from spit.training.options import HeadOptions
from spit.wording import plural


@dataclass(frozen=True)
class Photos(Options):
    """Which photos teach."""

    limit: int | None = same(Evaluating, "limit", None)


def train_head(data: Data, models: Models, photos: Photos, options: HeadOptions, output: Output,
               running: Running) -> int:
    """Train a token head for saliency, a linear layer, on photos without labels or masks.

    --data has photos at any depth, seen at a shorter side of --size (default: 320 pixels). The head first learns the
    model's own cut of each photo, cleaned along superpixel edges; then, round by round, the mean of the cut and its
    own answers, cleaned likewise. The model stays as it is. --output gets MODEL.head.safetensors, which `spit segment`
    and `spit evaluate saliency` read with --token-head. A thousand photos take about 2 GB of memory.
    """
    from spit.evaluation.samples import find_images, spread
    from spit.training.head import SIZE, fit_head

    models.expect_one()
    samples = spread(find_images(data), photos.limit)
    predictor = models.load_one(running.device)
    with waiting("Looking at photos", len(samples)) as say:
        made = fit_head(predictor, [sample.image for sample in samples], options, models.size or SIZE, say)
    file = made.save(output.output / f"{predictor.name}.head.safetensors")
    if running.as_json:
        print_json({"file": str(file), "model": predictor.name, "layers": made.layers,
                    "numbers": made.weights.numel() + 1, **made.about})
        return 0
    show(f"{plural(len(samples), 'photo')}; {made.weights.numel() + 1:,} numbers on tokens of layers "
         f"{', '.join(map(str, made.layers))}\nThe head is in {shown(file)}; give it to spit segment with --token-head")
    return 0
