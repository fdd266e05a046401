"""Every public name has an example in its docstring, and the examples run as written."""

import doctest

import pytest

import spit

pytestmark = pytest.mark.usefixtures("restored_parts")  # examples register parts
FINDER = doctest.DocTestFinder(recurse=False)


@pytest.mark.parametrize("name", spit.__all__)
def test_example(name: str) -> None:
    pytest.importorskip("skimage")
    found = FINDER.find(getattr(spit, name), name, globs={})
    assert found
    assert found[0].examples, f"spit.{name} has no example"
    for test in found:
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert result.failed == 0
        assert result.attempted > 0


@pytest.mark.parametrize("kind", [spit.SpitModel, spit.Predictor, spit.Prediction, spit.Partition, spit.Hierarchy])
def test_examples_of_methods(kind: type) -> None:
    results = [doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
               for test in doctest.DocTestFinder().find(kind, kind.__name__, globs={})]
    assert sum(result.attempted for result in results) > 0
    assert sum(result.failed for result in results) == 0
