"""A page for practitioners: is this model's representation collapsing, since when, why, and does it matter."""
