rule dynamics:
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=TESTED),
        locks=LOCKS,
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
