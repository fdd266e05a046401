"""Errors in what comes from outside: files, weights and missing packages."""


class SpitError(Exception):
    """Base of spit's errors: something outside the library is wrong, and the message says what to do.

    Example:
        >>> import spit
        >>> try:
        ...     spit.load_model("./nowhere")
        ... except spit.SpitError as error:
        ...     print(error)
        no folder ./nowhere; give a folder that spit.save_model wrote, or a hub id, owner/name
    """


class ImageError(SpitError):
    """A file cannot be read as an image.

    Example:
        >>> import spit
        >>> for path in ("nowhere.jpg",):
        ...     try:
        ...         image = spit.load_image(path)
        ...     except spit.ImageError:
        ...         print("skipped", path)
        skipped nowhere.jpg
    """


class WeightsError(SpitError):
    """Weights or their config are missing, damaged, or belong to another model.

    Example:
        >>> import spit
        >>> spit.create_model("vit_tiny_16", pretrained="./nowhere")
        Traceback (most recent call last):
        spit.errors.WeightsError: no folder ./nowhere; give a folder that spit.save_model wrote, or a hub id, owner/name
    """


class MissingExtra(SpitError, ImportError):
    """An optional package is needed and not installed.

    Example:
        >>> import spit
        >>> print(spit.MissingExtra("captum", "explain", "LIME"))
        LIME needs captum; install the extra: pip install 'spit-vit[explain]' (in a clone: ...)
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}; install the extra: pip install 'spit-vit[{extra}]' "
                         f"(in a clone: pip install -c constraints.txt -e '.[{extra}]')")


class Stopped(SpitError):
    """A run was interrupted and can be continued."""
