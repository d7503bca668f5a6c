# Where `snakemake --report` shows each.
FIGURE_CATEGORIES = {
    "energy_over_training": "Dynamics",
    "isotropy_ablation": "Geometry",
    "early_late": "Dynamics",
    "subspace_overlap": "Dynamics",
    "component_tokens": "Geometry",
    "cosine_over_training": "Dynamics",
    "cosine_by_depth": "Geometry",
    "loss_against_isotropy": "Dynamics",
    "frequency_geometry": "Geometry",
    "attention_over_training": "Attention",
    "attention_sinks": "Attention",
    "toy": "Attention",
    "rank_curve": "Geometry",
    "alternatives": "Geometry",
}


rule figure:
    input:
        tables=lambda w: expand("<results>/tables/{stage}.parquet", stage=drawn_from(w.figure)),
        locks=LOCKS,
        style=STYLE,
    output:
        pdf="<results>/figures/{figure}.pdf",
        png=report(
            "<results>/figures/{figure}.png",
            caption="../report/figure.rst",
            category=lambda w: FIGURE_CATEGORIES[w.figure],
            labels={"name": "{figure}", "kind": "figure"},
        ),
        csv="<results>/figures/{figure}.csv",
        tex="<results>/figures/{figure}.tex",
        rst="<results>/figures/{figure}.rst",
    log:
        "<logs>/figures/{figure}.log",
    benchmark:
        "<benchmarks>/figures/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(FIGURE_TABLES),
    localrule: True
    params:
        spec=lambda w: P.figure(w.figure),
    script:
        "../scripts/figures.py"


rule figures:
    """Every figure of the config."""
    input:
        expand("<results>/figures/{figure}.pdf", figure=study.figures.names),
