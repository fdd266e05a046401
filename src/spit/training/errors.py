"""What can end a run, each with a way on."""

from spit.errors import SpitError


class TrainingError(SpitError):
    """A run cannot begin or go on; the message says what to do."""


class Stopped(SpitError):  # noqa: N818  (nothing went wrong)
    """A run was asked to stop, and is saved."""
