rule tables:
    input:
        locks=[f"<results>/checkpoints/{model}.lock.json" for model in study.models],
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
    params:
        spec=lambda w: P.tables(w.stage),
    script:
        "../scripts/tables.py"


rule tables_all:
    """Every table."""
    input:
        expand("<results>/tables/{stage}.parquet", stage=STAGES + ["audit", "dynamics", "claims"]),


rule audit_all:
    """The audit of every model, as locks and a table."""
    input:
        [f"<results>/checkpoints/{model}.lock.json" for model in study.models],
        "<results>/tables/audit.parquet",
