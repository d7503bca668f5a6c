"""Vectors dumped elsewhere, as the stores that a capture would have written."""
