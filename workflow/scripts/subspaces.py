"""How a model's tangent bases compare, and the tokens at either end of their directions."""

from pathlib import Path

from isotrace.components import components
from isotrace.job import job
from isotrace.readers import model_sites
from isotrace.results import write_model
from isotrace.subspaces import read_fitted, subspace_table

with job(snakemake) as spec:
    bases, moving, moments, caches = (
        [Path(path) for path in getattr(snakemake.input, name)] for name in ("bases", "moving", "moments", "cache")
    )
    fitted = read_fitted(bases, moving, moments, caches)
    tokenizer = next((Path(path) for path in [snakemake.input.tokenizer] if path), None)
    sites = model_sites(next(path for path in caches if path.stem == fitted.early[-1]))
    write_model(snakemake.output.subspaces, subspace_table(fitted, spec), "subspaces", sites)
    write_model(snakemake.output.components, components(fitted.caches[-1], bases, tokenizer, spec), "components", sites)
