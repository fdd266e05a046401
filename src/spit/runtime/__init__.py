"""The whole pipeline without torch: numpy, numba and Pillow for tokens, onnxruntime for the network.

``spit export`` writes the file that :func:`load` takes. Labels are those of torch's pipeline bit for bit: both run the
loops of :mod:`spit.kernels.numba`. Nothing that is imported here imports torch.

Example:
    >>> import spit.runtime
    >>> runtime = spit.runtime.load("spit_tiny_16.onnx")  # doctest: +SKIP
    >>> for name, probability in runtime("cat.jpg").top(2):  # a flat list, since it is one image  # doctest: +SKIP
    ...     print(name, probability)
"""

from spit.data.classes import Guess
from spit.runtime.pipeline import Answer, Runtime, load

__all__ = ["Answer", "Guess", "Runtime", "load"]
