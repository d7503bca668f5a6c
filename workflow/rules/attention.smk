rule attention:
    input:
        heads="<results>/attention/{model}/{checkpoint}.json",
    output:
        table="<results>/attention/{model}/{checkpoint}.parquet",
    params:
        spec=P.attention(),
    log:
        "<logs>/attention/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/attention/{model}/{checkpoint}.tsv"
    script:
        "../scripts/attention.py"
