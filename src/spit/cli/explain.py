"""``spit explain``: which pixels a prediction rests on, as pictures and numbers."""

from spit.answers.classify import Classify
from spit.answers.explain import Explain
from spit.attribution.options import MethodOptions
from spit.cli.answers import SharingOptions, answer_each
from spit.cli.classify import show_top, square
from spit.cli.console import show, shown
from spit.cli.inputs import Document, find_inputs
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.results import Results
from spit.wording import plural


def explain(images: Images, methods: MethodOptions, question: Explain, models: Models, tokenizer: TokenizerChoice,
            naming: Classify, reading: Reading, sharing: SharingOptions, output: Output, running: Running) -> int:
    """Show which pixels a prediction rests on.

    For cat.jpg: cat.explain.png (image, tokens and a map for each method; of several models, a row for each),
    cat.occlusion.png (without the most important pixels, and with nothing but them, by the first method),
    cat.METHOD.npy (each map, float32) and cat.explain.json (classes, scores). The model sees the central square, as in
    classification, or with --whole the whole image, of up to 512 × 512 pixels. Without --method: relevance, the most
    faithful of the fast methods, prototype (if the model has prototypes) and flow. token_rise and lime evaluate the
    model up to --samples times, which takes seconds. Compare values within one
    map only, not between maps, methods or images; a map's colours end at its 5th and 95th percentile. A second run
    skips images that are done with the same models, methods and settings; --again repeats them. An image that cannot be
    read is reported, the others go on, and the exit code is 2.
    """
    inputs = find_inputs(images, output.output)
    predictors = models.load_classifiers(running.device, tokenizer)
    from spit.attribution.methods import class_index
    from spit.cli.work.explain import UNLIKELY, Explained, ExplainWork

    explained = []
    several = len(predictors) > 1
    methods.check_prototypes(predictors)
    for predictor in predictors:
        left_out: dict[str, str] = {}
        target = None if question.target is None else class_index(predictor.class_names, question.target)
        explained.append(Explained(predictor, methods.methods_for(predictor.model, left_out), target, left_out,
                                   not question.crop, models.size, several))
    squares = {one.name: square(one) for one in predictors}
    title = "" if several else shown(models.model[0].rstrip("/"))  # of several, each photo's caption has its model
    results = Results.of(inputs, output.output, "explain.json", sharing.again, verb="explain", top=naming.top,
                         title=title, advice=not methods.names, models={
        own.predictor.name: {
            "model": own.predictor.digest, "config": own.predictor.model.config.to_dict(),
            "whole": own.whole, "size": own.size,
            "methods": {method.name: method.config() for method in own.methods},
            "target": None if own.target is None else f"{own.target} {own.predictor.class_names[own.target]}"}
        for own in explained})
    work = ExplainWork(explained, title, not methods.names, naming.top, reading, results)
    count = sum(len(own.methods) for own in explained) + 3

    def show_all(documents: list[Document]) -> None:
        for document in documents:
            for part in document["models"]:
                seen = squares[part["model"]] if question.crop else "whole image"
                about = f"{shown(document['image'])}, {part['model']} ({seen}, {plural(part['tokens'], 'token')})"
                target = part["target"]
                subject = (f"explains {target['name']}, {target['probability']:.1%}" if part["of_class"] else
                           f"{', '.join(part['maps'])}: the same for any class")
                show(f"{about}: {subject}", "bold")
                show_top(part["top"])
                if part["of_class"] and target["probability"] < UNLIKELY:
                    show(f"{target['name']} is unlikely: the map compares pixels with each other, and does not "
                         "say that the class is in the image")
            show(f"The panel is {shown(output.output / document['files']['panel'])}", "bold green")
        show(f"{count} files for each image are in {shown(output.output)}: panel, occlusions, maps (NPY) and "
             "explain.json")
        for own in explained:
            for name, reason in own.left_out.items():
                show(f"{own.predictor.name}: {name} is left out; {reason}")

    return answer_each(inputs, "Explaining", work, show_all, running.as_json, results, sharing.workers,
                       output=str(output.output))
