"""Which checkpoints a model has, found while a workflow is parsed: one module a kind of source."""
