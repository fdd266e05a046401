import torch

from spit.backbone import Block, Spans
from spit.backbone.block import drop_images
from spit.tokens import Tokens, offsets_of


def spans_of(*counts):
    return Spans.of(Tokens(torch.empty(sum(counts), 0), offsets_of(torch.tensor(counts))))


def block_of(layer_scale=None, drop_path=0.0):
    return Block(8, 2, mlp_ratio=4.0, qkv_bias=False, layer_scale=layer_scale, drop_path=drop_path)


def test_layer_scale_begins_near_the_identity_and_none_has_no_scale():
    values, spans = torch.randn(5, 8), spans_of(2, 3)
    scaled, plain = block_of(layer_scale=1e-5), block_of()
    assert (scaled(values, spans) - values).abs().max() < 1e-3 < (plain(values, spans) - values).abs().max()
    assert not any("scale" in name for name in plain.state_dict())
    torch.testing.assert_close(scaled.scale1.factor, torch.full((8,), 1e-5))


def test_stochastic_depth_drops_whole_images_and_keeps_the_mean():
    torch.manual_seed(0)
    spans = spans_of(*[3] * 2000, 5)
    dropped = drop_images(torch.ones(6005, 1), spans, 0.3)
    images = dropped[:6000].view(2000, 3)
    assert torch.equal(images.amin(1), images.amax(1))
    assert set(images[:, 0].tolist()) == {0.0, torch.tensor(1 / 0.7).item()}
    assert abs(images[:, 0].mean() - 1) < 0.05
    assert dropped[6000:].unique().numel() == 1


def test_stochastic_depth_is_for_training_only():
    values, spans = torch.randn(64, 8), spans_of(*[2] * 32)
    block = block_of(drop_path=0.5)
    assert torch.equal(block.eval()(values, spans), block(values, spans))
    torch.manual_seed(0)
    first = block.train()(values, spans)
    assert not torch.equal(first, block(values, spans))
    skipped = (first == values).view(32, -1).all(1)
    assert 0 < skipped.sum() < 32  # a quarter of the images skip both branches, all their rows together
    assert torch.equal(skipped, (first == values).view(32, -1).any(1))


def test_rate_zero_draws_no_random_numbers():
    state = torch.get_rng_state()
    drop_images(torch.ones(4, 2), spans_of(2, 2), 0.0)
    assert torch.equal(torch.get_rng_state(), state)


def test_mlp_is_the_exact_gelu():
    block = Block(4, 1, 2.0, False, None, 0.0)
    values = torch.randn(3, 4)
    inner = block.mlp.inner(values)
    expected = block.mlp.outer(inner * 0.5 * (1 + torch.erf(inner / 2**0.5)))
    torch.testing.assert_close(block.mlp(values), expected)
    assert block.mlp.inner.out_features == 8
    assert block.norm1.eps == 1e-6
