"""Training: recipes, tasks, the loop, checkpoints, and many processes."""
