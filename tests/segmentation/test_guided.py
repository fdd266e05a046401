import torch

from spit.segmentation.guided import guided_filter


def edge() -> torch.Tensor:
    image = torch.zeros(3, 24, 24)
    image[:, :, 12:] = 1
    return image


def test_a_map_that_follows_the_image_stays() -> None:
    soft = edge()[0]
    torch.testing.assert_close(guided_filter(edge(), soft), soft, atol=0.01, rtol=0)


def test_a_ragged_map_is_drawn_to_the_edge() -> None:
    soft = edge()[0].clone()
    soft[4:6, 8:12] = 1  # a patch beyond the edge
    smooth = guided_filter(edge(), soft, radius=6)
    assert float(smooth[5, 10]) < 0.5
    assert float(smooth[5, 16]) > 0.9
    assert smooth.dtype == torch.float32


def test_without_edges_it_is_the_mean_of_means() -> None:
    soft = torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    flat = guided_filter(torch.full((3, 9, 9), 0.5), soft, radius=9)
    torch.testing.assert_close(flat, soft.mean().expand(9, 9))
