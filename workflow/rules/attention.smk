rule attention:
    input:
        audit="<results>/checkpoints/{model}/{checkpoint}.json",
        sample="<results>/sample/{model}.json",
    output:
        table="<results>/attention/{model}/{checkpoint}.parquet",
    params:
        spec=lambda w: P.attention(w.model),
    log:
        "<logs>/attention/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/attention/{model}/{checkpoint}.tsv"
    script:
        "../scripts/attention.py"
