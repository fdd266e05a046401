"""What requests hold and what answers say, with examples."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spit.answers.classify import Classify
from spit.answers.explain import Explain
from spit.answers.segment import Segment
from spit.options import Options, declared

Text = Annotated[str, Field(max_length=200)]
Samples = Annotated[int | None, Field(ge=1, le=1024, description="Passes of the methods that leave tokens out, and of "
                                                                 "lime")]


def asked(question: type[Options], name: str, **changes: Any) -> Any:
    """The field of a request that is an option of a question, with its default, range and help."""
    item, spec = next((item, spec) for item, _, spec in declared(question) if item.name == name)
    return Field(**{"default": item.default, "ge": spec.least, "le": spec.most, "description": spec.help, **changes})


class Fields(BaseModel):
    """Fields of a request; one that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class TokenFields(Fields):
    """The model and its tokens."""

    model: Text | None = Field(None, description="A name of /v1/models (default: the first)", examples=["spit_tiny_16"])
    tokenizer: Literal["superpixel", "patch", "voronoi"] | None = Field(
        None, description="Tokens to cut the image into (default: the model's own)")
    max_tokens: int | None = Field(None, ge=1, le=65535, description="Bound on the superpixel tokens", examples=[256])
    compactness: float | None = Field(None, ge=0, le=1, description="Weight of compact shapes for superpixel tokens")
    refine: int | None = Field(None, ge=0, le=10, description="Refinement sweeps of superpixel tokens")

    def options(self) -> dict[str, Any]:
        """The tokenizer's options that were given."""
        return self.model_dump(include={"max_tokens", "compactness", "refine"}, exclude_none=True)


class ExplainPicture(Fields):
    """Which explanation of a picture."""

    method: Text = Field("relevance", description="A name that /v1/models lists under methods", examples=["relevance"])
    target: int | Text | None = asked(Explain, "target", examples=["tabby"])
    samples: Samples = None


class SegmentPicture(Fields):
    """Which mask of a picture."""

    method: Literal["head", "cut", "both"] | None = asked(Segment, "method")
    clean: bool = asked(Segment, "clean")
    tau: float | None = asked(Segment, "tau")
    merge: bool = asked(Segment, "merge")

    def question(self) -> Segment:
        """What is asked of the picture."""
        return Segment(**self.model_dump(include=set(SegmentPicture.model_fields)))


class CorrespondPictures(Fields):
    """Which pictures to compare."""

    source: Text
    targets: list[Text] = Field(min_length=1, max_length=8)


class SnippetFields(BaseModel):
    """Which view a snippet reproduces; what does not apply to it is ignored."""

    view: Literal["classify", "explain", "segment", "tokens", "correspond", "compare"]
    method: Text | None = None
    target: Text | None = None
    layer: int = Field(-1, ge=-1000, le=1000)
    clean: bool = True
    tau: float | None = Field(None, ge=-1, le=1)
    samples: Samples = None
    edits: str = Field("", max_length=4000, pattern=r"^(\d{1,3}:\d{1,5}:[01](,|$))*$")  # level:region:inside,…
    name: Text = "picture.png"
    others: list[Text] = Field([], max_length=8)  # pictures beside this one
    names: list[Text] = Field([], max_length=8)  # of the others' files
    models: Text | None = None
    tokenizers: Text | None = Field(None, pattern=r"^(superpixel|patch|voronoi)(,(superpixel|patch|voronoi))*$")


class TokenizeFields(TokenFields):
    """Options of /v1/tokenize."""

    max_side: int = Field(512, ge=16, le=4096, description="The image is made smaller if its longer side exceeds this, "
                                                           "or the service's own limit")


class WholeFields(TokenFields):
    """A model and the size of an image; answers are at the image's own pixels unless a side is given."""

    max_side: int | None = Field(None, ge=16, le=4096, description="Make the image smaller first, to this longer side "
                                                                   "or the service's own limit")


class ClassifyFields(TokenFields):
    """Options of /v1/classify."""

    top: int = asked(Classify, "top", le=1000)


class ExplainFields(ExplainPicture, WholeFields):
    """Options of /v1/explain."""

    crop: bool = asked(Explain, "crop")


class SegmentFields(SegmentPicture, WholeFields):
    """Options of /v1/segment."""


class CorrespondFields(TokenizeFields):
    """Options of /v1/correspond."""

    temperature: float = Field(0.01, ge=1e-4, le=10, description="Temperature of the softmax between tokens")


class EmbedFields(TokenizeFields):
    """Options of /v1/embed."""

    tokens: bool = Field(False, description="Also return the tokens of the regions and their label map")


class Array(BaseModel):
    """Numbers: ``scale`` times the little-endian values in ``data``, row by row."""

    shape: list[int] = Field(examples=[[300, 451]])
    dtype: Literal["float16", "float32", "uint8"]
    scale: float = 1.0
    data: str = Field(description="base64", examples=["ADwAPAA4"])


class Labels(BaseModel):
    """The region of each pixel, as a PNG: 16-bit grey, the value is the region."""

    encoding: Literal["grey16", "rgba32"]
    png: str = Field(description="base64", examples=["iVBORw0KGgo="])


class Class(BaseModel):
    """A class and its probability."""

    index: int = Field(examples=[281])
    name: str = Field(examples=["tabby"])
    probability: float = Field(examples=[0.42])


class Mask(BaseModel):
    """A mask as COCO's run lengths; pycocotools.mask.decode reads it."""

    size: list[int] = Field(description="Height and width", examples=[[300, 451]])
    counts: str = Field(examples=["PPYo1"])


class Answer(BaseModel):
    """What every answer says."""

    model: str = Field(examples=["spit_tiny_16"])
    width: int = Field(description="Of the image as this answer describes it", examples=[451])
    height: int = Field(examples=[300])
    tokens: int = Field(description="Regions that the model saw", examples=[502])
    seen: list[int] = Field(description="Width and height of what the model saw", examples=[[451, 300]])


class TokenizeAnswer(Answer):
    """Regions of an image."""

    labels: Labels


class ClassifyAnswer(Answer):
    """The likeliest classes, first the likeliest."""

    classes: list[Class]


class ExplainAnswer(Answer):
    """Which pixels a class rests on."""

    method: str = Field(examples=["relevance"])
    crop: bool = Field(description="Whether the map is that of the central square")
    target: Class | None = Field(description="The class that is explained; none if the method has none")
    map: Array


class SegmentAnswer(Answer):
    """The salient object."""

    mask: Mask
    box: list[int] = Field(description="x, y, width and height of the mask; zeros if it is empty",
                           examples=[[12, 20, 400, 270]])
    area: int = Field(description="Pixels of the mask", examples=[61234])
    foreground: float = Field(description="Share of the image", examples=[0.45])
    tau: float | None = Field(examples=[0.2])


class ColoredImage(BaseModel):
    """Pseudo-colours of an image as a PNG, and the share of it that is like the source's foreground."""

    width: int = Field(examples=[451])
    height: int = Field(examples=[300])
    colored: float = Field(examples=[0.4])
    png: str = Field(description="base64", examples=["iVBORw0KGgo="])


class CorrespondAnswer(BaseModel):
    """Parts that are alike have the same colour; black is like the source's background."""

    model: str = Field(examples=["spit_tiny_16"])
    source: ColoredImage
    targets: list[ColoredImage]


class EmbedAnswer(Answer):
    """The class token, and the other tokens if they were asked for."""

    embedding: list[float] = Field(examples=[[0.12, -0.5, 1.7]])
    token_values: Array | None = None
    labels: Labels | None = None


class ModelAnswer(BaseModel):
    """A model that requests may name."""

    name: str = Field(examples=["spit_tiny_16"])
    default: bool
    tokenizer: str = Field(examples=["superpixel"])
    width: int = Field(description="Of a token", examples=[192])
    layers: int = Field(examples=[12])
    heads: int = Field(examples=[3])
    classes: int = Field(examples=[1000])
    methods: list[str] | None = Field(description="Of attribution; known once the model is loaded",
                                      examples=[["relevance", "flow"]])


class ModelsAnswer(BaseModel):
    """The models of the service."""

    models: list[ModelAnswer]


class StatusAnswer(BaseModel):
    """Whether the service runs."""

    status: Literal["ok", "ready"]
    version: str = Field(examples=["0.1.0"])


class Error(BaseModel):
    """What went wrong."""

    code: str = Field(description="Stable; docs/serving.md lists them", examples=["image_too_large"])
    message: str = Field(description="One sentence", examples=["The image has more than 25,000,000 pixels."])


class ErrorAnswer(BaseModel):
    """Every answer that is not 200."""

    error: Error
