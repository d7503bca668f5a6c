rule frequency:
    input:
        audit="<results>/checkpoints/{model}/{checkpoint}.json",
        sample="<results>/sample/{model}.json",
        cache="<results>/cache/{model}/{checkpoint}.json",
    output:
        table="<results>/frequency/{model}/{checkpoint}.parquet",
        points="<results>/frequency_points/{model}/{checkpoint}.parquet",
    log:
        "<logs>/frequency/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/frequency/{model}/{checkpoint}.tsv"
    wildcard_constraints:
        model=any_of(study.reading),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("frequency"),
        runtime=runtime("frequency"),
    params:
        spec=lambda w: P.frequency(w.model),
    script:
        "../scripts/frequency.py"
