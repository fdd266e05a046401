"""Names: where a class keeps its parts, and the table of the classes of transformers.

A module does not know its image processor. The colours stated here are those that the released weights of a family were
trained with. Some weights differ, as those of DINO in a ``ViTModel``: ``spit.wrap(vit, mean=processor.image_mean,
std=processor.image_std)``.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from spit.kernels.tables import IMAGENET_MEAN, IMAGENET_STD

HALF = (0.5, 0.5, 0.5)
OPENAI_MEAN = (0.48145466, 0.4578275, 0.40821073)
OPENAI_STD = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class Names:
    """Where a class keeps its parts, and what its head reads. A name may have dots; a part may be missing.

    Attributes:
        file: of a class of transformers, under ``transformers.models``.
        seam: of that class, in :mod:`spit.seams.transformers`.
        body: the transformer inside a class with a head; empty if it is the module itself.
        embeddings: in the body, what holds ``patch``, the patch embedding, ``after``, the norm behind it, ``prefix``,
            the tokens before those of the image, and ``table``, the positions, those of the prefix first.
        enter: in the body, what comes between positions and the first block.
        blocks: in the body, as are ``norm``, the last one, and ``pool``, what pools tokens.
        masked: blocks must be given an attention mask, which is None.
        reads: what is read if nothing pools: tokens of the prefix, by number, and the mean of the image's tokens.
        heads: one layer for all that is read, or one for each part, whose answers are averaged.
        embeds: the head is a projection, not a classifier.
        crop: share of the short side that the central square takes; None scales the whole image to the square.
    """

    file: str = ""
    seam: str = "TransformersViT"
    body: str = ""
    embeddings: str = "embeddings"
    patch: str = "patch_embeddings.projection"
    after: str = ""
    prefix: tuple[str, ...] = ("cls_token",)
    table: str = "position_embeddings"
    enter: tuple[str, ...] = ("embeddings.dropout",)
    blocks: str = "layers"
    norm: str = "layernorm"
    pool: str = "pooler"
    masked: bool = False
    reads: tuple[int | Literal["mean"], ...] = (0,)
    heads: tuple[str, ...] = ()
    embeds: bool = False
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    crop: float | None = 0.875

    def headed(self, body: str, *heads: str, **changes: Any) -> "Names":
        """The same parts inside a class with a head."""
        return replace(self, body=body, heads=heads or ("classifier",), **changes)


VIT = Names("vit.modeling_vit", mean=HALF, std=HALF, crop=None)
MAE = Names("vit_mae.modeling_vit_mae", "TransformersMae")
DEIT = Names("deit.modeling_deit", prefix=("cls_token", "distillation_token"))
IJEPA = Names("ijepa.modeling_ijepa", prefix=(), reads=("mean",))
BEIT = replace(VIT, file="beit.modeling_beit", seam="TransformersBeit")
DATA2VEC = Names("data2vec.modeling_data2vec_vision", "TransformersBeit", blocks="encoder.layer")
DINOV2 = Names("dinov2.modeling_dinov2", blocks="encoder.layer")
REGISTERS = Names("dinov2_with_registers.modeling_dinov2_with_registers", prefix=("cls_token", "register_tokens"),
                  blocks="encoder.layer")
DINOV3 = Names("dinov3_vit.modeling_dinov3_vit", "TransformersDinov3", patch="patch_embeddings",
               prefix=("cls_token", "register_tokens"), table="", blocks="model.layer", norm="norm")
CLIP = Names("clip.modeling_clip", "TransformersClip", patch="patch_embedding", prefix=("class_embedding",),
             table="position_embedding", enter=("pre_layrnorm",), blocks="encoder.layers", norm="post_layernorm",
             masked=True, mean=OPENAI_MEAN, std=OPENAI_STD, crop=1.0)
SIGLIP = Names("siglip.modeling_siglip", patch="patch_embedding", prefix=(), table="position_embedding",
               blocks="encoder.layers", norm="post_layernorm", pool="head", masked=True, reads=("mean",), mean=HALF,
               std=HALF, crop=None)
SIGLIP2 = replace(SIGLIP, file="siglip2.modeling_siglip2", seam="TransformersSiglip2")
AIMV2 = Names("aimv2.modeling_aimv2", "TransformersAimv2", patch="patch_embed", after="rms_norm", prefix=(),
              table="position_embedding", blocks="encoder.layers", norm="rms_norm", pool="head", reads=("mean",),
              mean=OPENAI_MEAN, std=OPENAI_STD, crop=1.0)

NAMES = {
    "ViTModel": VIT,
    "ViTForImageClassification": VIT.headed("vit"),
    "ViTMAEModel": MAE,
    "DeiTModel": DEIT,
    "DeiTForImageClassification": DEIT.headed("deit"),
    "DeiTForImageClassificationWithTeacher": DEIT.headed("deit", "cls_classifier", "distillation_classifier",
                                                         reads=(0, 1)),
    "IJepaModel": IJEPA,
    "IJepaForImageClassification": IJEPA.headed("ijepa"),
    "BeitModel": BEIT,
    "BeitForImageClassification": BEIT.headed("beit"),
    "Data2VecVisionModel": DATA2VEC,
    "Data2VecVisionForImageClassification": DATA2VEC.headed("data2vec_vision"),
    "Dinov2Model": DINOV2,
    "Dinov2ForImageClassification": DINOV2.headed("dinov2", reads=(0, "mean")),
    "Dinov2WithRegistersModel": REGISTERS,
    "Dinov2WithRegistersForImageClassification": REGISTERS.headed("dinov2_with_registers", reads=(0, "mean")),
    "DINOv3ViTModel": DINOV3,
    "CLIPVisionModel": CLIP,
    "CLIPVisionModelWithProjection": CLIP.headed("vision_model", "visual_projection", embeds=True),
    "SiglipVisionModel": SIGLIP,
    "SiglipForImageClassification": SIGLIP.headed("vision_model", pool=""),
    "Siglip2VisionModel": SIGLIP2,
    "Siglip2ForImageClassification": SIGLIP2.headed("vision_model", pool=""),
    "Aimv2VisionModel": AIMV2,
}
