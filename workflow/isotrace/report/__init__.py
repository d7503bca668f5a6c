"""The page of a study, results/report.html: what was claimed, drawn, audited, configured, and what it took."""
