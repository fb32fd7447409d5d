"""How good a partition is: metrics, datasets with ground truth, and what else a user could have picked."""
