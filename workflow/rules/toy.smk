rule toy:
    """An untrained block over Gaussian inputs: what attention alone makes of a common direction."""
    output:
        parquet="<results>/tables/toy.parquet",
        csv="<results>/tables/toy.csv",
    log:
        "<logs>/toy.log",
    benchmark:
        "<benchmarks>/toy.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("toy"),
        runtime=runtime("toy"),
    params:
        spec=P.toy(),
    script:
        "../scripts/toy.py"
