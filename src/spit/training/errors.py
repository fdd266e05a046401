"""What can end a run, each with a way on."""

from spit.errors import SpitError, Stopped

__all__ = ["Stopped", "TrainingError"]


class TrainingError(SpitError):
    """A run cannot begin or go on; the message says what to do."""
