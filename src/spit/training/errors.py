"""The error of a run."""

from spit.errors import SpitError, Stopped

__all__ = ["Stopped", "TrainingError"]


class TrainingError(SpitError):
    """A run cannot start or continue; the message says what to do."""
