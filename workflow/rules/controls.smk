rule controls:
    input:
        cache="<results>/cache/{model}/{checkpoint}.json",
        moments="<results>/moments/{model}/{checkpoint}.json",
        bases=bases_of(METHODS),
    output:
        controls=per_bucket("controls"),
        rank_curve=per_bucket("rank_curve"),
    log:
        per_bucket_side("logs", "controls", "log"),
    benchmark:
        per_bucket_side("benchmarks", "controls", "tsv")
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("controls"),
        runtime=runtime("controls"),
    params:
        spec=lambda w: P.analysis("controls", w.model),
    script:
        "../scripts/controls.py"
