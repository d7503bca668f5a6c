rule report:
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=ANALYSES + ["controls", "claims", "audit"]),
        figures=expand("<results>/figures/{figure}.png", figure=study.figures.names),
        locks=LOCKS,
        tokens=[f"<results>/tokens/{model}.json" for model in study.reading],
        declared=CLAIMS,
    output:
        "<results>/report.html",
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    params:
        spec=P.report(),
    script:
        "../scripts/report.py"
