"""Which rules a change of the config reruns: worked out from Snakemake's own graph, and written into the docs."""
