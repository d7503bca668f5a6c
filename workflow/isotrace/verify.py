"""Are sealed stores what was sealed, and were they made by this config and this code?

Snakemake forgets params and code when ``.snakemake/metadata`` is lost; the manifests do not.
"""

from pathlib import Path
from typing import Any

from isotrace.errors import DataError
from isotrace.params import Params
from isotrace.store import differences, fingerprint, read_manifest
from isotrace.study import Study


def findings(manifest: Path, study: Study | None = None, results: Path = Path("results")) -> list[str]:
    """What is wrong with one store, a line each; with a study also whether another config or code made it."""
    try:
        content = read_manifest(manifest)
    except DataError as error:
        return [str(error)]
    wrong = differences(manifest, content)
    spec = None if study is None else _spec(manifest, Params(study), results)
    if spec is not None:
        expected = fingerprint(spec)
        for key, what in (("params_digest", "config"), ("code_digest", "code")):
            if content[key] != expected[key]:
                wrong.append(f"was made with another {what} than the present one")
    return wrong


def _spec(manifest: Path, params: Params, results: Path) -> dict[str, Any] | None:
    """The params of the rule that writes a manifest, None for what this study does not write."""
    try:
        parts = manifest.resolve().relative_to(results.resolve()).with_suffix("").parts
    except ValueError:
        return None
    study, series = params.study, params.study.series
    if len(parts) == 2 and parts[1] in series:
        return {"tokens": params.tokens, "sample": params.sample}[parts[0]](parts[1])
    if len(parts) == 3 and parts[1] in series and parts[2] in series[parts[1]].ids:
        model = parts[1]
        filled = params.vectors if model in study.dumped else params.capture
        return (params.perceive if model in study.perceived else filled)(model, parts[2])
    return None
