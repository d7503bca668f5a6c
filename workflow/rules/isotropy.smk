rule isotropy:
    input:
        cache="<results>/cache/{model}/{checkpoint}.json",
        moments="<results>/moments/{model}/{checkpoint}.json",
        bases=bases_of(study.bases.methods),
    output:
        tables=per_bucket("isotropy"),
    log:
        per_bucket_side("logs", "isotropy", "log"),
    benchmark:
        per_bucket_side("benchmarks", "isotropy", "tsv")
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("isotropy"),
        runtime=runtime("isotropy"),
    params:
        spec=lambda w: P.analysis("isotropy", w.model),
    script:
        "../scripts/isotropy.py"
