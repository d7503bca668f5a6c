"""Stored checkpoints: training, discovery, loading, audit and lock."""
