import torch

from spit.backbone import Recorder, Transformer
from spit.tokens import Tokens


def batch(*counts, width=8):
    offsets = torch.tensor([0, *counts]).cumsum(0)
    return Tokens(torch.randn(int(offsets[-1]), width), offsets)


def test_rate_of_stochastic_depth_grows_linearly():
    backbone = Transformer(8, depth=5, heads=2, drop_path=0.2)
    rates = torch.tensor([block.drop_path for block in backbone.blocks])
    torch.testing.assert_close(rates, torch.tensor([0.0, 0.05, 0.1, 0.15, 0.2]))
    assert Transformer(8, depth=1, heads=2, drop_path=0.2).blocks[0].drop_path == 0


def test_recording_changes_nothing_and_keeps_what_was_asked():
    backbone, tokens = Transformer(8, depth=3, heads=2, layer_scale=None).eval(), batch(4, 2, 4)
    recorder = Recorder.of({"attention": (-1,), "features": (0, 2)}, depth=3)
    recorded = backbone(tokens, recorder)
    assert torch.equal(recorded.values, backbone(tokens).values)
    assert list(recorder.attention) == [2]
    assert list(recorder.features) == [0, 2]
    assert [maps.shape for maps in recorder.attention[2]] == [(2, 4, 4), (2, 2, 2), (2, 4, 4)]
    assert torch.equal(backbone.norm(recorder.features[2].values), recorded.values)


def test_recorded_attention_is_the_layer_own():
    backbone, tokens = Transformer(8, depth=2, heads=2, layer_scale=None).eval(), batch(3, 5)
    recorder = Recorder.of(("attention", "features"), depth=2)
    backbone(tokens, recorder)
    block = backbone.blocks[1]
    query, key, _ = block.attention.qkv(block.norm1(recorder.features[0].values[3:])).view(5, 3, 2, 4).unbind(1)
    expected = (torch.einsum("nhd,mhd->hnm", query, key) / 2).softmax(-1)
    torch.testing.assert_close(recorder.attention[1][1], expected)


def test_an_image_is_alone_in_its_batch():
    backbone, tokens = Transformer(8, depth=2, heads=2, layer_scale=None).eval(), batch(4, 2, 7)
    for image, rows in zip(tokens.split(), backbone(tokens).split(), strict=True):
        alone = backbone(Tokens(image, torch.tensor([0, len(image)]))).values
        torch.testing.assert_close(alone, rows, atol=1e-5, rtol=0)


def test_initial_weights():
    torch.manual_seed(0)
    backbone = Transformer(64, depth=1, heads=2, qkv_bias=True)
    weight = backbone.blocks[0].mlp.inner.weight
    assert abs(weight.std() - 0.02) < 1e-3
    assert all(not bias.any() for name, bias in backbone.named_parameters() if name.endswith("bias"))
