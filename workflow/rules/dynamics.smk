rule dynamics:
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=STAGES),
        locks=[f"<results>/checkpoints/{model}.lock.json" for model in study.models],
        declared=CLAIMS,
    output:
        parquet="<results>/tables/dynamics.parquet",
        csv=report(
            "<results>/tables/dynamics.csv",
            caption="../report/table.rst",
            category="Tests",
            labels={"table": "dynamics"},
        ),
    log:
        "<logs>/dynamics.log",
    benchmark:
        "<benchmarks>/dynamics.tsv"
    params:
        spec=P.dynamics("dynamics"),
    script:
        "../scripts/dynamics.py"
