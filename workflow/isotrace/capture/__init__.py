"""Activations, true gradients and attention of one checkpoint (METHODS 3)."""
