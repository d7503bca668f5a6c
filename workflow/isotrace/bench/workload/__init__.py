"""What the benches of capture run: a random model, its sample, and bare passes through it."""
