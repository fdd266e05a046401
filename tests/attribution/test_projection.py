import numpy as np
import torch

import spit
from spit.attribution import PrototypeProjection, fit_prototypes
from spit.attribution.projection import project


def test_equals_the_svd_of_the_centred_matrix():
    random = torch.Generator().manual_seed(0)
    for count, width in ((30, 6), (4, 16)):  # more rows than columns, and fewer
        tokens, prototypes = (torch.randn(n, width, generator=random) for n in (count, 3))
        rows = np.concatenate([tokens.numpy(), prototypes.numpy()]).astype(np.float64)
        axis = np.linalg.svd(rows - rows.mean(0))[2][0]
        expected = (rows - rows.mean(0)) @ axis
        expected *= np.sign(expected[count:].sum())
        np.testing.assert_allclose(project(tokens, prototypes).numpy(), expected[:count], rtol=1e-4, atol=1e-5)


def test_tokens_like_the_prototypes_are_bright():
    """Half of the tokens look as the prototypes do, half the other way."""
    toward = torch.tensor([1.0, 0, 0, 0])
    tokens = torch.cat([toward + 0.1 * torch.rand(5, 4), -toward + 0.1 * torch.rand(5, 4)])
    values = project(tokens, toward.expand(3, 4))
    assert values[:5].min() > 0 > values[5:].max()
    assert project(tokens, -toward.expand(3, 4))[:5].max() < 0


def test_the_target_chooses_the_prototypes(small, images):
    model = small()
    made = fit_prototypes(model, images, [0, 1, 2])
    method = PrototypeProjection(made)
    output = model(images, record=())
    values = [project(tokens, made.values[1]) for tokens in output.tokens]
    expected = output.partition.paint(torch.cat(values).detach())
    torch.testing.assert_close(spit.explain(model, images, method, 1), expected)


def test_a_file_will_do(small, images, tmp_path):
    model = small()
    made = fit_prototypes(model, images)
    path = made.save(tmp_path / "own.safetensors")
    by_file, by_object = PrototypeProjection(path), PrototypeProjection(made)
    assert torch.equal(spit.explain(model, images, by_file), spit.explain(model, images, by_object))
    assert by_file.config() == by_object.config() == {"prototypes": made.digest}


def test_an_image_of_one_token(small):
    model = small()
    made = fit_prototypes(model, torch.zeros(1, 3, 8, 8))
    assert spit.explain(model, torch.zeros(1, 3, 8, 8), PrototypeProjection(made)).isfinite().all()
