"""What requests hold and what answers say, with examples."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=200)]
Tokenizer = Annotated[Literal["superpixel", "patch", "voronoi"] | None, Field(
    description="Tokens to cut the image into (default: the model's own)")]
MaxTokens = Annotated[int | None, Field(ge=1, le=65535, description="Bound on the superpixel tokens", examples=[256])]
Compactness = Annotated[float | None, Field(ge=0, le=1, description="Weight of compact shapes for superpixel tokens")]
Refine = Annotated[int | None, Field(ge=0, le=10, description="Refinement sweeps of superpixel tokens")]
ModelName = Annotated[Text | None, Field(description="A name of /v1/models (default: the first)",
                                         examples=["spit_tiny_16"])]
CutMethod = Annotated[Literal["head", "cut", "both"] | None, Field(
    description="What finds the foreground (default: both, or cut if the model has no head)")]
Tau = Annotated[float | None, Field(ge=-1, le=1, description="Cosine above which tokens are joined (default: the "
                                                              "image's own)")]
Clean = Annotated[bool, Field(description="Remove crumbs and holes, and follow finer superpixels")]
Target = Annotated[int | Text | None, Field(description="Class to explain, by index or name (default: the predicted "
                                                        "class)", examples=["tabby"])]
Samples = Annotated[int | None, Field(ge=1, le=1024, description="Passes of the methods that leave tokens out, and of "
                                                                 "lime")]


class Fields(BaseModel):
    """Fields of a request; one that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class TokenFields(Fields):
    """The model and its tokens."""

    model: ModelName = None
    tokenizer: Tokenizer = None
    max_tokens: MaxTokens = None
    compactness: Compactness = None
    refine: Refine = None

    def options(self) -> dict[str, Any]:
        """The tokenizer's options that were given."""
        given = {"max_tokens": self.max_tokens, "compactness": self.compactness, "refine": self.refine}
        return {name: value for name, value in given.items() if value is not None}


class PictureFields(TokenFields):
    """A picture for the page."""

    max_side: int = Field(512, ge=16, le=4096)


class ExplainPicture(Fields):
    """Which explanation of a picture."""

    method: Text = "relevance"
    target: Target = None
    samples: Samples = None


class SegmentPicture(Fields):
    """Which mask of a picture."""

    method: CutMethod = None
    clean: Clean = True
    tau: Tau = None


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
    head: int | None = Field(None, ge=0, le=1000)
    level: int | None = Field(None, ge=0, le=100)
    clean: bool = True
    tau: float | None = Field(None, ge=-1, le=1)
    name: Text = "picture.png"
    models: Text | None = None
    tokenizers: Text | None = None
