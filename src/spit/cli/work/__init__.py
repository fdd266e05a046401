"""What the verbs about images do to one image, in this process or in one of several; these modules import torch."""
