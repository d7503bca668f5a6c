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
            category="Dynamics",
            labels={"name": "dynamics", "kind": "table"},
        ),
    log:
        "<logs>/dynamics.log",
    benchmark:
        "<benchmarks>/dynamics.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("dynamics"),
        runtime=runtime("dynamics"),
    params:
        spec=P.dynamics("dynamics"),
    script:
        "../scripts/dynamics.py"
