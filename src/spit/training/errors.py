"""The error of a run."""

from spit.errors import SpitError


class TrainingError(SpitError):
    """A run cannot start or continue; the message says what to do."""
