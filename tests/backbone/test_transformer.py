import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from spit.backbone import Recorder, Spans, Transformer, TransformerOptions
from spit.compiled import CompiledBackbone
from spit.tokens import Tokens


def transformer(width, **options):
    return Transformer(TransformerOptions(width=width, **options))


def batch(*counts, width=8):
    offsets = torch.tensor([0, *counts]).cumsum(0)
    return Tokens(torch.randn(int(offsets[-1]), width), offsets)


def test_rate_of_stochastic_depth_grows_linearly():
    backbone = transformer(8, depth=5, heads=2, drop_path=0.2)
    rates = torch.tensor([block.drop_path for block in backbone.blocks])
    torch.testing.assert_close(rates, torch.tensor([0.0, 0.05, 0.1, 0.15, 0.2]))
    assert transformer(8, depth=1, heads=2, drop_path=0.2).blocks[0].drop_path == 0


def test_uniform_stochastic_depth_is_the_same_in_every_block():
    backbone = transformer(8, depth=5, heads=2, drop_path=0.2, drop_path_uniform=True)
    assert [block.drop_path for block in backbone.blocks] == [0.2] * 5
    backbone, tokens = transformer(8, depth=1, heads=2, drop_path=0.5, drop_path_uniform=True).train(), batch(3, 3)
    with torch.no_grad():
        for parameter in backbone.parameters():  # larger than at the start, so that a dropped branch shows
            parameter += torch.randn_like(parameter)
        assert len({backbone(tokens).values.sum().item() for _ in range(20)}) > 1  # the first block drops images too


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="width=8 and heads=3"):
        TransformerOptions(width=8, heads=3)


def test_recording_changes_nothing_and_keeps_what_was_asked():
    backbone, tokens = transformer(8, depth=3, heads=2, layer_scale=None).eval(), batch(4, 2, 4)
    recorder = Recorder.of({"attention": (-1,), "features": (0, 2)}, depth=3)
    recorded = backbone(tokens, recorder)
    assert torch.equal(recorded.values, backbone(tokens).values)
    assert list(recorder.attention) == [2]
    assert list(recorder.features) == [0, 2]
    assert [maps.shape for maps in recorder.attention[2]] == [(2, 4, 4), (2, 2, 2), (2, 4, 4)]
    assert torch.equal(backbone.norm(recorder.features[2].values), recorded.values)


def test_recorded_attention_is_the_layer_own():
    backbone, tokens = transformer(8, depth=2, heads=2, layer_scale=None).eval(), batch(3, 5)
    recorder = Recorder.of(("attention", "features"), depth=2)
    backbone(tokens, recorder)
    block = backbone.blocks[1]
    query, key, _ = block.attention.qkv(block.norm1(recorder.features[0].values[3:])).view(5, 3, 2, 4).unbind(1)
    expected = (torch.einsum("nhd,mhd->hnm", query, key) / 2).softmax(-1)
    torch.testing.assert_close(recorder.attention[1][1], expected)


def test_an_image_is_alone_in_its_batch():
    backbone, tokens = transformer(8, depth=2, heads=2, layer_scale=None).eval(), batch(4, 2, 7)
    for image, rows in zip(tokens.split(), backbone(tokens).split(), strict=True):
        alone = backbone(Tokens(image, torch.tensor([0, len(image)]))).values
        torch.testing.assert_close(alone, rows, atol=1e-5, rtol=0)


def test_initial_weights():
    torch.manual_seed(0)
    backbone = transformer(64, depth=1, heads=2, qkv_bias=True)
    weight = backbone.blocks[0].mlp.inner.weight
    assert abs(weight.std() - 0.02) < 1e-3
    assert all(not bias.any() for name, bias in backbone.named_parameters() if name.endswith("bias"))


def learn(backbone, tokens):
    """One pass and its derivatives: the answer, the loss's gradients of every parameter and of the tokens."""
    values = tokens.values.clone().requires_grad_()
    torch.manual_seed(1)
    answer = backbone(tokens.replace(values)).values
    wanted = [values, *backbone.parameters()]
    return answer.detach(), torch.autograd.grad((answer * torch.linspace(-1, 1, answer.numel()).view_as(answer)).sum(),
                                                wanted)


def twins(**options):
    torch.manual_seed(0)
    one, other = (transformer(8, depth=3, heads=2, layer_scale=0.5, **options) for _ in range(2))
    with torch.no_grad():
        for parameter in one.parameters():  # larger than at the start, so that a dropped branch shows
            parameter += 0.3 * torch.randn_like(parameter)
    other.load_state_dict(one.state_dict())
    return one, other


class TestCheckpointing:
    @pytest.mark.parametrize("drop_path", [0.0, 0.5])
    def test_same_answer_and_gradients(self, drop_path):
        plain, checkpointed = twins(drop_path=drop_path)
        checkpointed.checkpointing = True
        for tokens in (batch(4, 2, 7), batch(3, 3)):
            (expected, expected_gradients), (got, gradients) = learn(plain, tokens), learn(checkpointed, tokens)
            assert torch.equal(got, expected)
            for gradient, right in zip(gradients, expected_gradients, strict=True):
                torch.testing.assert_close(gradient, right, atol=1e-6, rtol=1e-5)

    def test_the_seed_matters_where_paths_are_dropped(self):
        """Or the test above would not see random numbers drawn anew in the backward pass."""
        backbone, _ = twins(drop_path=0.5)
        tokens = batch(4, 2, 7)
        first = learn(backbone, tokens)[0]
        torch.manual_seed(2)
        assert not torch.equal(backbone(tokens).values, first)

    @pytest.mark.parametrize(("checkpointing", "training", "passes"), [
        (True, True, 2), (False, True, 1), (True, False, 1), (False, False, 1)])
    def test_blocks_run_again_in_training_alone(self, checkpointing, training, passes):
        backbone = transformer(8, depth=2, heads=2).train(training)
        backbone.checkpointing = checkpointing
        seen = []
        backbone.blocks[0].mlp.register_forward_hook(lambda *_: seen.append(1))
        backbone(batch(3, 4)).values.sum().backward()
        assert len(seen) == passes

    def test_nothing_is_kept_where_no_gradient_is_wanted(self):
        backbone = transformer(8, depth=2, heads=2)
        backbone.checkpointing = True
        with torch.no_grad():
            assert not backbone(batch(3, 4)).values.requires_grad


class TestCompiled:
    @pytest.fixture
    def counter(self):
        torch._dynamo.reset()
        yield CompileCounterWithBackend("aot_eager")
        torch._dynamo.reset()

    def test_uniform_batches_compile_once_more(self, counter):
        plain, compiled = (backbone.eval() for backbone in twins())
        compiled.forward = CompiledBackbone(compiled, backend=counter)
        with torch.no_grad():
            for counts in ((4, 2, 7), (3, 5, 6), (4, 4, 4), (6, 6, 6), (2, 5, 3), (9, 9, 9)):
                tokens = batch(*counts)
                torch.testing.assert_close(compiled(tokens).values, plain(tokens).values, atol=1e-5, rtol=0)
        assert counter.frame_count <= 4  # two layouts, each fixed at first and dynamic then

    @pytest.mark.parametrize("checkpointing", [False, True])
    def test_same_gradients(self, counter, checkpointing):
        plain, compiled = twins()
        compiled.checkpointing = checkpointing
        compiled.forward = CompiledBackbone(compiled, backend=counter)
        for counts in ((4, 2, 7), (3, 5, 6), (9, 1, 2)):
            tokens = batch(*counts)
            (expected, expected_gradients), (got, gradients) = learn(plain, tokens), learn(compiled, tokens)
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)
            for gradient, right in zip(gradients, expected_gradients, strict=True):
                torch.testing.assert_close(gradient, right, atol=1e-4, rtol=1e-4)
        assert 1 <= counter.frame_count <= 2

    def test_fused_recording_is_part_of_the_compiled_pass(self, counter, monkeypatch):
        plain, compiled = twins()
        compiled.forward = CompiledBackbone(compiled, backend=counter)
        monkeypatch.setattr(compiled, "run_blocks", lambda *_: pytest.fail("a plain pass"))
        for counts in ((4, 2, 7), (3, 5, 6), (9, 1, 2)):
            tokens, kept, gradients = batch(*counts), [], []
            for backbone in (plain, compiled):
                recorder = Recorder({"features": (0, 2)}, fused=True)
                backbone.zero_grad()
                backbone(tokens, recorder)
                assert recorder.features.keys() == {0, 2}
                recorder.features[2].values.square().mean().backward()
                kept.append(recorder.features)
                gradients.append([parameter.grad for parameter in backbone.blocks.parameters()])
            for layer in (0, 2):
                assert torch.equal(kept[0][layer].offsets, kept[1][layer].offsets)
                torch.testing.assert_close(kept[1][layer].values, kept[0][layer].values, atol=1e-5, rtol=0)
            for one, other in zip(*gradients, strict=True):
                torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
        assert 1 <= counter.frame_count <= 2

    def test_recording_nothing_needs_no_second_pass(self, monkeypatch):
        backbone, _ = twins()
        backbone.forward = CompiledBackbone(backbone)
        backbone.forward._run = lambda values, spans, recorder: values
        monkeypatch.setattr(backbone, "run_blocks", lambda *_: pytest.fail("a plain pass"))
        tokens = batch(4, 2)
        assert torch.equal(backbone(tokens, Recorder.of((), depth=3)).values, tokens.values)
        with pytest.raises(pytest.fail.Exception, match="a plain pass"):
            backbone(tokens, Recorder.of({"features": (-1,)}, depth=3))


def test_first_rows_alone_are_those_of_all_rows():
    torch.manual_seed(0)
    network = transformer(8, depth=3, heads=2, qkv_bias=True, layer_scale=0.5).eval()
    for tokens in (batch(3, 7, 1), batch(4, 4)):
        spans = Spans.of(tokens)
        with torch.no_grad():
            expected = network.run_blocks(tokens.values, spans)[spans.offsets[:-1]]
            torch.testing.assert_close(network.run_first(tokens.values, spans), expected)


@pytest.mark.parametrize("counts", [(3, 7, 1), (5, 5), (16,), (17,)])
def test_rows_of_no_image_change_nothing_and_are_not_reported(counts, monkeypatch):
    torch.manual_seed(0)
    network = transformer(8, depth=3, heads=2, qkv_bias=True, layer_scale=0.5).eval()
    tokens, heads = batch(*counts), []

    def run():
        recorder = Recorder({"features": range(3), "attention": (0,)}, observe=lambda *found: heads.append(found[2]))
        with torch.no_grad():
            answer = network(tokens, recorder)
        assert {len(rows.values) for rows in recorder.features.values()} == {sum(counts)}
        assert [maps.shape[1:] for maps in recorder.attention[0]] == [(count, count) for count in counts]
        with torch.no_grad():
            class_tokens = network(tokens, first=True).values
        return answer.values, recorder.features[1].values, class_tokens

    rounded = run()
    assert {len(part) for found in heads for part in found} == {sum(counts)}
    monkeypatch.setattr("spit.backbone.transformer.round_rows", lambda values: values)
    for own, expected in zip(rounded, run(), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-6)


def test_stochastic_depth_of_first_rows():
    torch.manual_seed(0)
    block = transformer(8, depth=2, heads=2, drop_path=0.5, layer_scale=None).blocks[1].train()
    tokens = batch(*[2] * 400)
    spans = Spans.of(tokens)
    with torch.no_grad():
        first = tokens.values[spans.offsets[:-1]]
        untouched = (block.first(tokens.values, spans) == first).all(1).float().mean()
    assert 0.18 < untouched < 0.32  # both branches dropped: a quarter
