"""Statistical tests of series over training: tables in, tables out."""
