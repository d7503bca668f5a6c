"""Activations, true gradients and attention of one checkpoint."""
