import torch

import spit
from spit.attribution import RandomControl
from spit.attribution.control import image_generator


def test_random_values_depend_on_pixels_and_seed_alone(small, images):
    model = small("patch")
    first = spit.explain(model, images, "random")
    torch.manual_seed(7)
    assert torch.equal(first, spit.explain(model, images.float() / 255, "random"))
    assert torch.equal(first, spit.explain(small("patch", seed=1), images, "random"))
    assert not torch.equal(first, spit.explain(model, images, RandomControl(seed=1)))
    assert len(first[0].unique()) == 25


def test_every_image_has_its_own_numbers(images):
    draws = [torch.rand(2, generator=image_generator(image, 0)).tolist() for image in images]
    assert len({tuple(draw) for draw in draws}) == 3
