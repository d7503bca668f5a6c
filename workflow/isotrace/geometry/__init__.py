"""Pure numerics on rows and moments: arrays in, arrays and tables out."""
