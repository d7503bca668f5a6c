rule toy:
    """An untrained block over Gaussian inputs: what attention alone makes of a common direction."""
    output:
        parquet="<results>/tables/toy.parquet",
        csv="<results>/tables/toy.csv",
    log:
        "<logs>/toy.log",
    benchmark:
        "<benchmarks>/toy.tsv"
    params:
        spec=P.toy(),
    script:
        "../scripts/toy.py"
