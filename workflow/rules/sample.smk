rule sample:
    input:
        tokens="<results>/tokens/{model}.json",
    output:
        manifest=ensure("<results>/sample/{model}.json", non_empty=True),
        folder=directory("<results>/sample/{model}"),
    log:
        "<logs>/sample/{model}.log",
    benchmark:
        "<benchmarks>/sample/{model}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("sample"),
        runtime=runtime("sample"),
    params:
        spec=lambda w: P.sample(w.model),
    script:
        "../scripts/sample.py"
