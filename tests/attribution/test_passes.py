import torch

from spit.attribution import Lime
from spit.attribution.passes import config_of_passes, image_generator


def test_every_image_has_its_own_numbers(images):
    draws = [torch.rand(2, generator=image_generator(image, 0)).tolist() for image in images]
    assert len({tuple(draw) for draw in draws}) == 3


def test_how_passes_are_divided_and_told_changes_no_map():
    one, other = Lime(samples=8), Lime(samples=8, batch=3, progress=print)
    assert config_of_passes(one) == config_of_passes(other)
    assert config_of_passes(one) != config_of_passes(Lime(samples=9))
