"""Paper-ready figures: a table in; PDF, PNG and the drawn CSV out."""
