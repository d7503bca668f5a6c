"""The commands of ``isotrace``, one module each."""
