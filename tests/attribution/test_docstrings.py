"""The examples of names that spit itself does not export."""

import doctest

import pytest

from spit import answers, attribution

NAMES = [*attribution.METHODS.values(), attribution.Prototypes, attribution.create_method, attribution.fit_prototypes,
         attribution.occlude, attribution.rank_pixels, answers.Segment]


@pytest.mark.parametrize("public", NAMES, ids=lambda public: public.__name__)
def test_example(public):
    pytest.importorskip("captum")
    [test] = doctest.DocTestFinder(recurse=False).find(public, public.__name__, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
