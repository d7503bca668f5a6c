"""A first config for checkpoints that lie somewhere: found out what can be, asked what matters, else defaults."""
