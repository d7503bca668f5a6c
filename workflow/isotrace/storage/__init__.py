"""Large files outside of the results folder: rows in a bucket, downloaded weights that studies share."""
