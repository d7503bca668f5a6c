rule geometry:
    input:
        cache="<results>/cache/{model}/{checkpoint}.json",
        moments="<results>/moments/{model}/{checkpoint}.json",
        bases=bases_of(study.bases.methods),
        previous=previous_cache,
    output:
        tables=per_bucket("geometry"),
    log:
        per_bucket_side("logs", "geometry", "log"),
    benchmark:
        per_bucket_side("benchmarks", "geometry", "tsv")
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("geometry"),
        runtime=runtime("geometry"),
    params:
        spec=lambda w: P.analysis("geometry", w.model),
    script:
        "../scripts/geometry.py"
