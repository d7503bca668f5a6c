rule energy:
    input:
        cache="<results>/cache/{model}/{checkpoint}.json",
        moments="<results>/moments/{model}/{checkpoint}.json",
        bases=bases_of(METHODS),
    output:
        tables=per_bucket("energy"),
    log:
        per_bucket_side("logs", "energy", "log"),
    benchmark:
        per_bucket_side("benchmarks", "energy", "tsv")
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("energy"),
        runtime=runtime("energy"),
    params:
        spec=lambda w: P.analysis("energy", w.model),
    script:
        "../scripts/energy.py"
