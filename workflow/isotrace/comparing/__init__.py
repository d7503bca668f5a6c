"""Two studies side by side: what may be compared, the main numbers with their difference, claims, config keys."""
