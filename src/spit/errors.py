"""The one error family for what reaches spit from outside: files, weights, missing extras."""


class SpitError(Exception):
    """Something outside the library is not as it must be; the message says what to do."""


class ImageError(SpitError):
    """A file could not be read as an image."""


class WeightsError(SpitError):
    """Weights or their config are missing, damaged or of another model."""


class MissingExtra(SpitError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}; install the extra: pip install -e '.[{extra}]' "
                         "in the project's folder")


class Stopped(SpitError):
    """A run was interrupted and can be continued."""
