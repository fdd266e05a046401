"""Training: recipes, tasks, the loop, checkpoints, and many processes."""

from spit.errors import SpitError


class TrainingError(SpitError):
    """A run cannot start or continue; the message says what to do."""
