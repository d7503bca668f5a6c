"""What each figure reads of the config: the venue, rank and method, levels of intervals, which estimator.

Imported by the Snakefile on every cluster job, so nothing heavy comes in here.
"""

from pathlib import Path
from typing import Any

from isotrace.settings.media import MEDIA
from isotrace.study import Study


def figure_options(study: Study, figure: str) -> dict[str, Any]:
    """The options that a figure's function takes, as plain values."""
    s = study
    ranked = {"rank": s.dynamics.rank, "method": s.dynamics.method}
    read = {**ranked, "null_space": s.dynamics.null_space}
    energy, geometry = {"confidence": s.energy.confidence}, {"confidence": s.geometry.confidence}
    phases = {"early_fraction": s.bases.early_fraction, "late_fraction": s.bases.late_fraction}
    chosen: dict[str, dict[str, Any]] = {
        "energy_over_training": {**read, **energy},
        "early_late": {**read, **energy, **phases},
        "isotropy_ablation": {**read, **_isotropy(s), "convention": s.isotropy.conventions[0]},
        "subspace_overlap": ranked,
        "component_tokens": {"method": s.dynamics.method},
        "rank_curve": {"method": s.dynamics.method, **energy},
        "alternatives": {**ranked, **energy},
        "cosine_over_training": geometry,
        "cosine_by_depth": geometry,
        "attention_sinks": geometry,
        "loss_against_isotropy": _isotropy(s),
        "frequency_geometry": {"confidence": s.frequency.confidence},
    }
    return {"venue": s.figures.venue, "bucketed": _bucketed(s), **chosen.get(figure, {})}


def style_files(venue: str) -> list[str]:
    """The files of a venue's style, from the working directory where they lie below it.

    Relative, so that moving a checkout draws nothing again.
    """
    folder = Path(__file__).parent / "figures" / "styles"
    files = [folder / f"{name}.mplstyle" for name in ("isotrace", venue)]
    here = Path.cwd()
    return [str(file.relative_to(here) if file.is_relative_to(here) else file) for file in files]


def _isotropy(study: Study) -> dict[str, Any]:
    estimators = study.isotropy.estimators
    return {
        "confidence": study.isotropy.confidence,
        "estimator": "corrected" if "corrected" in estimators else estimators[0],
        "outliers": study.isotropy.outliers[0],
    }


def _bucketed(study: Study) -> str:
    """What the models' buckets are made of, in a legend's words."""
    energy = {model.task in MEDIA for model in study.models.values()}
    return " and ".join(name for name, found in (("token", False), ("energy", True)) if found in energy)
