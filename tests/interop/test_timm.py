import pickle
from contextlib import suppress

import pytest
import safetensors.torch
import torch

from spit.errors import WeightsError
from spit.interop.timm import from_timm
from spit.weights import save


def vit(width=64, patch=2, grid=2, classes=3):
    """A state dict in timm's names, one block."""
    torch.manual_seed(0)
    shapes = {
        "cls_token": (1, 1, width), "pos_embed": (1, grid**2 + 1, width),
        "patch_embed.proj.weight": (width, 3, patch, patch), "patch_embed.proj.bias": (width,),
        "norm.weight": (width,), "norm.bias": (width,), "head.weight": (classes, width), "head.bias": (classes,),
        "blocks.0.attn.qkv.weight": (3 * width, width), "blocks.0.attn.proj.weight": (width, width),
        "blocks.0.attn.proj.bias": (width,), "blocks.0.norm1.weight": (width,), "blocks.0.norm1.bias": (width,),
        "blocks.0.norm2.weight": (width,), "blocks.0.norm2.bias": (width,),
        "blocks.0.mlp.fc1.weight": (96, width), "blocks.0.mlp.fc1.bias": (96,),
        "blocks.0.mlp.fc2.weight": (width, 96), "blocks.0.mlp.fc2.bias": (width,),
    }
    return {name: torch.randn(shape) * 0.1 for name, shape in shapes.items()}


IMAGES = torch.arange(3 * 16, dtype=torch.uint8).view(1, 3, 4, 4) * 5


def test_config_is_read_from_the_tensors():
    model = from_timm(vit())
    config = model.config
    assert not model.training
    assert (config.tokenizer, config.tokenizer_options["size"], config.resolution) == ("patch", 2, 2)
    assert (config.position_bins, config.position_sigma, config.gradients) == (2, 0.0, False)
    assert (config.normalization, config.width, config.depth, config.heads) == ("imagenet", 64, 1, 1)
    assert (config.mlp_ratio, config.qkv_bias, config.layer_scale, config.num_classes) == (1.5, False, None, 3)


def test_without_a_head():
    tensors = {name: tensor for name, tensor in vit().items() if not name.startswith("head.")}
    assert from_timm(tensors)(IMAGES).shape == (1, 64)


def test_the_source_is_not_touched():
    tensors = vit()
    copy = {name: tensor.clone() for name, tensor in tensors.items()}
    with torch.no_grad():
        for parameter in from_timm(tensors).parameters():
            parameter.zero_()
    assert all(torch.equal(tensor, copy[name]) for name, tensor in tensors.items())


@pytest.mark.parametrize("wrap", [False, True])
def test_files(tmp_path, wrap):
    tensors, model = vit(), from_timm({name: tensor.half() for name, tensor in vit().items()})
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    expected = from_timm(vit())(IMAGES)
    safetensors.torch.save_file(tensors, tmp_path / "vit.safetensors")
    torch.save({"model": tensors, "epoch": 3} if wrap else tensors, tmp_path / "vit.pth")
    for name in ("vit.safetensors", "vit.pth"):
        assert torch.equal(from_timm(tmp_path / name)(IMAGES), expected)
        assert torch.equal(from_timm(str(tmp_path / name))(IMAGES), expected)


class Module(torch.nn.Module):
    """As much of a timm module as from_timm looks at."""

    def __init__(self, global_pool="token", eps=1e-6):
        super().__init__()
        self.global_pool = global_pool
        self.attn = torch.nn.Module()
        self.attn.num_heads = 4
        self.norm = torch.nn.LayerNorm(1, eps=eps)
        self.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}

    def state_dict(self):
        return vit()


def test_a_module_tells_its_heads_and_colors():
    model = from_timm(Module())
    assert model.config.heads == 4
    expected = from_timm(vit(), heads=4, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    assert torch.equal(model(IMAGES), expected(IMAGES))


@pytest.mark.parametrize("options", [{"global_pool": "avg"}, {"eps": 1e-5}])
def test_a_module_that_reads_otherwise(options):
    with pytest.raises(WeightsError, match=str(next(iter(options.values())))):
        from_timm(Module(**options))


@pytest.mark.parametrize("extra", [
    "dist_token", "reg_token", "fc_norm.weight", "head_dist.weight", "norm_pre.weight", "rope.freqs",
    "blocks.0.mlp.w12.weight", "blocks.0.attn.q_norm.weight", "blocks.0.ls1.extra", "pre_logits.fc.weight",
])
def test_variants_are_refused_by_name(extra):
    with pytest.raises(WeightsError, match=f"it has {extra};"):
        from_timm({**vit(), extra: torch.zeros(1)})
    lacking = {name: tensor for name, tensor in vit().items() if name != "norm.weight"}
    with pytest.raises(WeightsError, match=r"it lacks norm\.weight;"):
        from_timm(lacking)


@pytest.mark.parametrize(("name", "shape", "message"), [
    ("pos_embed", (1, 7, 64), "square grid.*7, 64"),
    ("patch_embed.proj.weight", (64, 3, 2, 4), "square patches"),
    ("patch_embed.proj.weight", (64, 1, 2, 2), "3 colours"),
    ("blocks.0.mlp.fc2.weight", (64, 48), r"mlp.outer.weight expected \(64, 96\), got \(64, 48\)"),
])
def test_wrong_shapes_are_named(name, shape, message):
    with pytest.raises(WeightsError, match=message):
        from_timm({**vit(), name: torch.zeros(shape)})


def test_heads_that_the_width_does_not_tell():
    with pytest.raises(WeightsError, match="heads="):
        from_timm(vit(width=48))
    assert from_timm(vit(width=48), heads=3).config.heads == 3


@pytest.mark.parametrize("source", [3, None, {"a": 1}, []])
def test_wrong_types(source):
    with pytest.raises(TypeError, match="expected a state dict"):
        from_timm(source)
    with pytest.raises(ValueError, match="mean and std"):
        from_timm(vit(), std=(1, 1, 0))


class Malicious:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_nothing_is_unpickled(tmp_path):
    torch.save({**vit(), "extra": Malicious()}, tmp_path / "vit.pth")
    (tmp_path / "plain.pth").write_bytes(pickle.dumps(Malicious(), protocol=2))
    for name in ("vit.pth", "plain.pth"):
        with pytest.raises(WeightsError, match="not a file of tensors alone"):
            from_timm(tmp_path / name)


@pytest.mark.parametrize("name", ["vit.safetensors", "vit.pth", "vit.bin"])
@pytest.mark.parametrize("data", [b"", b"garbage" * 9, b"\x80\x02}q\x00.", b"\x89PNG\r\n\x1a\n"])
def test_damaged_files(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(WeightsError, match=name.replace(".", r"\.") + "|it lacks"):
        from_timm(tmp_path / name)


def test_a_folder_or_nothing(tmp_path):
    (tmp_path / "vit.pth").mkdir()
    save(from_timm(vit()), tmp_path / "saved")
    for name, words in {"vit.pth": "got a folder", "saved": r"spit\.load_model", "none.pth": "no file",
                        "none.safetensors": "no file"}.items():
        with pytest.raises(WeightsError, match=words):
            from_timm(tmp_path / name)


def test_other_objects_are_refused_without_advice_to_unpickle_them(tmp_path):
    torch.save({"model": Malicious()}, tmp_path / "vit.pth")
    with pytest.raises(WeightsError, match=r"save model\.state_dict\(\)") as caught:
        from_timm(tmp_path / "vit.pth")
    assert "weights_only" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_number_of_classes_gets_a_fresh_head():
    torch.manual_seed(1)
    model, saved = from_timm(vit(), num_classes=7), from_timm(vit())
    assert model.head.linear.weight.shape == (7, 64)
    assert model.head.linear.weight.any()
    assert torch.equal(model.embedder.projection.weight, saved.embedder.projection.weight)
    assert torch.equal(from_timm(vit(), num_classes=3)(IMAGES), saved(IMAGES))
    assert torch.equal(from_timm(vit(), num_classes=0)(IMAGES), saved.embed(IMAGES))


@pytest.mark.parametrize("name", vit())
@pytest.mark.parametrize("change", [
    lambda tensor: tensor.new_zeros(()), lambda tensor: tensor[:0], lambda tensor: tensor[None],
    lambda tensor: torch.cat([tensor, tensor[:1]]), lambda tensor: torch.cat([tensor, tensor[..., :1]], -1),
    lambda tensor: tensor.to_sparse(), lambda tensor: tensor.to("meta"), lambda tensor: tensor + 1j,
    lambda tensor: tensor * float("nan")], ids=["scalar", "empty", "nested", "longer", "wider", "sparse", "meta",
                                               "complex", "nan"])
def test_one_wrong_tensor(name, change):
    tensors = vit()
    tensors[name] = change(tensors[name])
    with suppress(WeightsError):  # and no other error; a longer head is another number of classes, and the like
        assert from_timm(tensors)(IMAGES).isfinite().all()
