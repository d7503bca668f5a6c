FIGURE_TABLES = {
    "energy_over_training": ["energy"],
    "isotropy_ablation": ["isotropy"],
    "early_late": ["energy"],
    "subspace_overlap": ["subspaces"],
    "component_tokens": ["components"],
    "cosine_over_training": ["geometry"],
    "cosine_by_depth": ["geometry"],
    "loss_against_isotropy": ["isotropy", "geometry"],
    "frequency_geometry": ["frequency", "frequency_points"],
    "attention_over_training": ["attention"],
    "attention_sinks": ["attention_mass", "attention_intervals"],
    "toy": ["toy"],
    "rank_curve": ["rank_curve"],
    "alternatives": ["controls"],
}


rule figure:
    input:
        tables=lambda w: expand("<results>/tables/{stage}.parquet", stage=FIGURE_TABLES[w.figure]),
        locks=LOCKS,
    output:
        pdf="<results>/figures/{figure}.pdf",
        png=report(
            "<results>/figures/{figure}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        csv="<results>/figures/{figure}.csv",
    log:
        "<logs>/figures/{figure}.log",
    benchmark:
        "<benchmarks>/figures/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(FIGURE_TABLES),
    params:
        spec=lambda w: P.figure(w.figure),
    script:
        "../scripts/figures.py"


rule figures:
    """Every figure of the config."""
    input:
        expand("<results>/figures/{figure}.pdf", figure=study.figures.names),
