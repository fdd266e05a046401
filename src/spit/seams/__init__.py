"""Other people's backbones: a seam for each family says where tokens enter; :func:`spit.wrap` joins them to τ and φ.

====================  ==============================================================
``seam``              what a family has to say, and which class has which seam
``timm``              timm's plain ViTs
``names``             where classes of transformers keep their parts
``named``             a seam for a class that keeps its parts under names
``transformers``      the classes of that table
``others``            torchvision, open_clip, DINOv2 and DINOv3 from torch.hub
``crops``             φ: a patch of pixels for each region, and its place
``attention``         ragged batches inside other people's blocks
``model``             γ, f and h as a model of spit
``wrap``              :func:`spit.wrap`, and its check on square patches
====================  ==============================================================
"""

from spit.seams.crops import CropExtractor
from spit.seams.seam import Seam, register_seam
from spit.seams.wrap import wrap

__all__ = ["CropExtractor", "Seam", "register_seam", "wrap"]
