import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit.backbone import Attention, Spans, attention, attention_maps, ragged_attention
from spit.backbone.packed import attend
from spit.tokens import Tokens, offsets_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WAYS = [attention._looped, attention._padded, ragged_attention]


def by_triton(query, key, value, spans):
    """Triton's interpreter where there is no CUDA."""
    pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
    packed = torch.stack([query, key, value], 1).to(DEVICE)
    return attend(packed, spans.offsets.to(DEVICE), spans.longest)[0].to(query.device)


def packed(counts, heads=2, width=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(3, sum(counts), heads, width, generator=generator)
    return (*rows.unbind(), Spans.of(Tokens(torch.empty(sum(counts), 0), offsets_of(torch.tensor(counts)))))


def dense_softmax(query, key, value, spans):
    """The formula written out, image by image and head by head."""
    answers = []
    for q, k, v in zip(*(rows.split(spans.counts) for rows in (query, key, value)), strict=True):
        scores = torch.einsum("nhd,mhd->hnm", q, k) / q.shape[-1] ** 0.5
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        answers.append(torch.einsum("hnm,mhd->nhd", weights, v))
    return torch.cat(answers)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=25, deadline=None)
@given(counts=st.lists(st.integers(1, 7), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_every_way_is_the_formula(way, counts, seed):
    query, key, value, spans = packed(counts, seed=seed)
    expected = dense_softmax(query, key, value, spans)
    torch.testing.assert_close(way(query, key, value, spans), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize(("dtype", "way", "tolerance"), [
    (torch.float32, "_padded", 1e-4), (torch.bfloat16, "_varlen", 3e-2), (torch.float16, "_varlen", 4e-3)])
def test_cuda_takes_the_way_of_its_dtype(dtype, way, tolerance, monkeypatch):
    *rows, _ = packed([40, 7, 130], heads=3, width=64)
    tokens = Tokens(torch.empty(177, 0, device="cuda"), offsets_of(torch.tensor([40, 7, 130])).cuda())
    spans = Spans.of(tokens)
    expected = dense_softmax(*(x.double() for x in rows), spans)
    taken = []
    plain = getattr(attention, way)
    monkeypatch.setattr(attention, way, lambda *args: taken.append(way) or plain(*args))
    got = ragged_attention(*(x.to("cuda", dtype) for x in rows), spans)
    assert taken == [way]
    torch.testing.assert_close(got.double().cpu(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("counts", [[1], [70, 5, 130], [64, 128]])
def test_the_kernel_and_its_gradients_are_the_formula(counts):
    *rows, spans = packed(counts, heads=2, width=16)
    slope = torch.randn(sum(counts), 2, 16, generator=torch.Generator().manual_seed(1))
    found = []
    for way in (by_triton, dense_softmax):
        own = [row.clone().requires_grad_() for row in rows]
        answer = way(*own, spans)
        found.append([answer.detach(), *torch.autograd.grad(answer, own, slope)])
    tolerance = 5e-3 if torch.cuda.is_available() else 1e-5  # there, products of float32 have 10 bits
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, atol=tolerance, rtol=tolerance)


def test_compiled_code_takes_the_kernel_as_one_operation():
    pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
    query, key, value, spans = packed([5, 3], heads=2, width=16)
    rows = torch.stack([query, key, value], 1).to(DEVICE).requires_grad_()
    torch.library.opcheck(torch.ops.spit.attend.default, (rows, spans.offsets.to(DEVICE), 5))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_packed_rows_in_half_precision_take_the_kernel(monkeypatch):
    *rows, spans = packed([40, 7, 130], heads=3, width=64)
    expected = dense_softmax(*(x.double() for x in rows), spans)
    monkeypatch.setattr(attention, "ragged_attention", lambda *_: pytest.fail("another way"))
    on_device = Spans.of(Tokens(torch.empty(177, 0, device="cuda"), offsets_of(torch.tensor([40, 7, 130])).cuda()))
    got = attention.packed_attention(torch.stack(rows, 1).to("cuda", torch.bfloat16), on_device).answer
    torch.testing.assert_close(got.double().cpu(), expected, atol=3e-2, rtol=3e-2)


def test_dense_way_is_the_formula():
    query, key, value, spans = packed([3, 3, 3])
    expected = dense_softmax(query, key, value, spans)
    torch.testing.assert_close(attention._dense(query, key, value, spans), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_those_of_the_formula(way):
    query, key, value, spans = packed([1, 5, 3])
    gradients = []
    for function in (way, dense_softmax):
        inputs = [rows.clone().requires_grad_() for rows in (query, key, value)]
        gradients.append(torch.autograd.grad(function(*inputs, spans).square().sum(), inputs))
    for got, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_no_leak_between_images(way):
    query, key, value, spans = packed([4, 2, 5])
    before = way(query, key, value, spans)
    for rows in (query, key, value):
        rows[4:6] = 1e3 * torch.randn(rows[4:6].shape)
    after = way(query, key, value, spans)
    assert torch.equal(after[:4], before[:4])
    assert torch.equal(after[6:], before[6:])
    assert not torch.equal(after[4:6], before[4:6])


def test_maps_are_the_weights_of_the_answer():
    query, key, value, spans = packed([4, 1, 6])
    answer = ragged_attention(query, key, value, spans)
    for weights, v, expected in zip(attention_maps(query, key, spans), value.split(spans.counts),
                                    answer.split(spans.counts), strict=True):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]))
        torch.testing.assert_close(torch.einsum("hnm,mhd->nhd", weights, v), expected, atol=1e-6, rtol=1e-5)


def test_module_shapes_and_bias():
    _, _, _, spans = packed([2, 3])
    module = Attention(8, heads=2, qkv_bias=True)
    assert module(torch.randn(5, 8), spans).shape == (5, 8)
    assert module.qkv.bias is not None
    assert Attention(8, heads=2, qkv_bias=False).qkv.bias is None
