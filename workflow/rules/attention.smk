rule attention:
    input:
        heads="<results>/attention/{model}/{checkpoint}.json",
    output:
        table="<results>/attention/{model}/{checkpoint}.parquet",
    log:
        "<logs>/attention/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/attention/{model}/{checkpoint}.tsv"
    params:
        spec=P.attention(),
    script:
        "../scripts/attention.py"
