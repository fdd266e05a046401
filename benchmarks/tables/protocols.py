"""What the paper prescribes for Tables 1 to 4 and G1, where spit's own choices differ."""

from spit.answers import Segment
from spit.data.classes import wordnet_ids
from spit.evaluation.faithfulness import Methods
from spit.evaluation.samples import LabelledFolder
from spit.predictor import Predictor

CUT = Segment(method="cut", tau=1 / 3, foreground="class_token", clean=False, merge=False)
"""App. E: final tokens, τ = 1/3, and the foreground by class tokens."""
METHODS = ("lime", "flow", "prototype", "random")  # Table 2's rows, and the control
TRANSFER_SIZE = 256  # of CIFAR-100's and Caltech-256's images in App. C


def squares(predictor: Predictor, test: LabelledFolder, size: int | None = None) -> Predictor:
    """The predictor with the paper's squares of a data set.

    ImageNet's images have the size that the model was last trained at, and the model's own crop: the paper does not
    describe its crop. Images of other data sets are rescaled whole to 256² (App. C, fine tuning).

    Args:
        size: side of the squares instead of these.
    """
    model = predictor.model.view()
    config = model.config
    if len(test.classes) == len(wordnet_ids()) or set(test.classes) <= set(wordnet_ids()):  # ImageNet's
        return Predictor(model, predictor.name, size or config.train_size or config.eval_size)
    model.config = config.replace(eval_crop=None)
    return Predictor(model, predictor.name, size or TRANSFER_SIZE)


def reading(methods: Methods) -> Methods:
    """The methods in the authors' reading: LIME's p and removal, flow through all layers, prototypes' component."""
    return methods.replace(lime_p="keep", lime_remove="tokens", flow_skip=0, prototype_form="paper")
