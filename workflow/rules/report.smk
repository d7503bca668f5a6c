rule report:
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=ANALYSES + ["controls", "claims", "audit"]),
        figures=expand("<results>/figures/{figure}.png", figure=study.figures.names),
        captions=expand("<results>/figures/{figure}.rst", figure=study.figures.names),
        locks=LOCKS,
        tokens=[f"<results>/tokens/{model}.json" for model in study.reading],
        declared=CLAIMS,
        audit=report(
            "<results>/tables/audit.csv",
            caption="../report/audit.rst",
            category="Audit",
            labels={"name": "audit", "kind": "table"},
        ),
    output:
        html="<results>/report.html",
        runtime=report(
            "<results>/runtime.csv",
            caption="../report/runtime.rst",
            category="Runtime",
            labels={"name": "runtime", "kind": "table"},
        ),
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    localrule: True
    params:
        spec=P.report(),
    script:
        "../scripts/report.py"
