"""isotrace: where a language model's anisotropy comes from, when it forms, which directions carry it."""

__version__ = "0.1.0"
