rule attention:
    input:
        heads="<results>/attention/{model}/{checkpoint}.json",
    output:
        attention="<results>/attention/{model}/{checkpoint}.parquet",
        intervals="<results>/attention_intervals/{model}/{checkpoint}.parquet",
        mass="<results>/attention_mass/{model}/{checkpoint}.parquet",
    log:
        "<logs>/attention/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/attention/{model}/{checkpoint}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("attention"),
        runtime=runtime("attention"),
    params:
        spec=P.attention(),
    script:
        "../scripts/attention.py"
