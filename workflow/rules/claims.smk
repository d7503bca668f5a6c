rule claims:
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=TESTED + ["dynamics"]),
        locks=LOCKS,
        declared=CLAIMS,
    output:
        parquet="<results>/tables/claims.parquet",
        csv=report(
            "<results>/tables/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
            labels={"name": "claims", "kind": "table"},
        ),
    log:
        "<logs>/claims.log",
    benchmark:
        "<benchmarks>/claims.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("claims"),
        runtime=runtime("claims"),
    params:
        spec=P.dynamics("claims"),
    script:
        "../scripts/claims.py"
