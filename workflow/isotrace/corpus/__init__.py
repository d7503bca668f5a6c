"""Text to tokens, frequencies, buckets and sampled positions."""
