"""The config model: every key with its description, default and unit; unknown keys are forbidden."""
