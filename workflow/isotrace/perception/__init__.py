"""Models that read images or audio, captured into the stores that text fills."""
