"""What a paper takes from a study: captions, LaTeX macros and tables, figures redrawn from tables alone."""
