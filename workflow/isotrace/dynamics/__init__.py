"""Statistical tests of series over training (METHODS 11): tables in, tables out."""
