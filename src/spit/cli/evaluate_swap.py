"""``spit evaluate swap``: every tokenizer on every model (Table 4)."""

from spit.cli.measuring import Data, Measuring, Models, about_line


def swap(measuring: Measuring, data: Data, model: Models) -> int:
    """Accuracy of each model on square patches, Voronoi cells and superpixels, beside the paper's Table 4.

    Voronoi cells are drawn five times, seeds 0 to 4: mean and standard deviation.
    """
    from spit.evaluation.swap import evaluate, sheet

    test, subjects = measuring.folder(data), measuring.load(model)
    size = measuring.choose_size(subjects)
    with measuring.examiner(size) as examiner:
        cells = evaluate(examiner, subjects, test)
    about = about_line(data, len(test.images), size=size, precision=measuring.precision)
    measuring.report(sheet(cells, about), cells, size, data=str(data), images=len(test.images))
    return 0
