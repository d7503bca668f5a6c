"""What a study will take, known from its config and its checkpoints' configs before anything runs."""
