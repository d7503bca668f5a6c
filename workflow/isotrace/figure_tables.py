"""Which tables each figure reads; imported by the Snakefile and by what redraws figures, so nothing comes in here."""

FIGURE_TABLES = {
    "energy_over_training": ["energy"],
    "isotropy_ablation": ["isotropy"],
    "early_late": ["energy"],
    "subspace_overlap": ["subspaces"],
    "component_tokens": ["components"],
    "cosine_over_training": ["geometry"],
    "cosine_by_depth": ["geometry", "untrained"],
    "loss_against_isotropy": ["isotropy", "geometry"],
    "frequency_geometry": ["frequency", "frequency_points"],
    "attention_over_training": ["attention"],
    "attention_sinks": ["attention_mass", "attention_intervals"],
    "toy": ["toy"],
    "rank_curve": ["rank_curve"],
    "alternatives": ["controls", "energy"],
}
OPTIONAL = ("untrained", "frequency_points")
"""Tables that a figure does without where a study has none."""
