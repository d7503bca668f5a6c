rule table:
    input:
        locks=LOCKS,
        results=lambda w: [] if w.stage == "audit" else results_of(w.stage),
    output:
        parquet="<results>/tables/{stage}.parquet",
        csv="<results>/tables/{stage}.csv",
    log:
        "<logs>/tables/{stage}.log",
    benchmark:
        "<benchmarks>/tables/{stage}.tsv"
    wildcard_constraints:
        stage="|".join(STAGES + ["audit", "frequency_points"]),
    localrule: True
    params:
        spec=lambda w: P.tables(w.stage),
    script:
        "../scripts/tables.py"


rule tables:
    """Every table."""
    input:
        expand("<results>/tables/{stage}.parquet", stage=STAGES + ["audit", "dynamics", "claims"]),


rule audit:
    """The audit of every model, as locks and a table."""
    input:
        LOCKS,
        "<results>/tables/audit.parquet",
