rule initialise:
    input:
        tokenizer=lambda w: study.series[w.model].tokenizer or [],
        shape=lambda w: drawn_like(w.model),
    output:
        manifest=ensure("<results>/weights/{model}/{draw}.json", non_empty=True),
        config="<results>/weights/{model}/{draw}/config.json",
    log:
        "<logs>/initialise/{model}/{draw}.log",
    benchmark:
        "<benchmarks>/initialise/{model}/{draw}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("initialise"),
        runtime=runtime("initialise"),
    params:
        spec=lambda w: P.initialise(w.model, w.draw),
    script:
        "../scripts/initialise.py"
