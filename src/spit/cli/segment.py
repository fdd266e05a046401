"""``spit segment``: the salient object of images, cut out."""

from math import prod

from spit.answers.segment import Segment
from spit.cli.answers import SharingOptions, answer_each, show_files
from spit.cli.console import show
from spit.cli.inputs import Document, Input, find_inputs
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.results import Results
from spit.devices import Precise
from spit.wording import plural


def segment(images: Images, models: Models, tokenizer: TokenizerChoice, question: Segment,
            sharing: SharingOptions, reading: Reading, precise: Precise, output: Output, running: Running) -> int:
    """Cut the salient object out of images, with the tokens of a classifier alone.

    For cat.jpg: cat.mask.png (white on black), cat.cutout.png (transparent outside the object), cat.mask-overlay.png
    (outlined, the rest pale), cat.saliency.png (the soft map in grey) and cat.segment.json. Images of
    more than 262,144 pixels (512 × 512) are reduced to that many for the model; the mask comes back along
    superpixels of the original. Folders keep their structure. A second run skips images that are done with the same
    model and settings; --again repeats them. An image that cannot be read is reported, the others go on, and the exit
    code is 2.
    """
    inputs = find_inputs(images, output.output)
    predictor = models.load_one(running.device, tokenizer)
    from spit.cli.work.segment import SegmentWork
    from spit.data.images import header_size
    from spit.devices import autocast
    from spit.predictor import ALONE, SEEN
    from spit.segmentation.head import head_for

    question = question.replace(size=models.size)
    question.layer_of(predictor.model.config.depth)  # now, rather than for every image
    head = head_for(predictor, question.method, question.token_head)
    predictor = question.joined(predictor)
    precision = precise.precision or "fp32"
    autocast(predictor.device, precision)  # refuses now what it cannot do
    given = head.digest if head and question.token_head else None  # spit's own follows from the model and the version
    results = Results.of(
        inputs, output.output, "segment.json", sharing.again, verb="segment", model=predictor.digest,
        config=predictor.model.config.to_dict(), question={**question.to_dict(), "token_head": given},
        precision=precision)

    def alone(item: Input) -> bool:  # a large one needs the memory, and fills the threads
        return predictor.device.type not in ALONE or prod(header_size(item.path)) > SEEN

    def show_all(documents: list[Document]) -> None:
        show_files(documents, output.output, ("tokens", "foreground"), lambda document: (
            f"{document['tokens']:,}", f"{document['foreground']:.1%}"))
        empty = sum(document["foreground"] == 0 for document in documents)
        if empty:
            show(f"{plural(empty, 'image')} without a foreground: nothing to cut")
        reduced = sum(document["seen"] != [document["width"], document["height"]] for document in documents)
        if reduced and models.size is None:
            show(f"{plural(reduced, 'image')} {'was' if reduced == 1 else 'were'} reduced to {SEEN:,} pixels "
                 f"(as many as 512 × 512) for the model; --size SIDE asks for more")

    return answer_each(inputs, "Segmenting", SegmentWork(predictor, question, precision, reading, results),
                       show_all, running.as_json, results, sharing.workers, alone, output=str(output.output))
