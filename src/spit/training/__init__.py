"""Training: recipes, the loop, checkpoints that are never lost, many machines."""
