rule sample:
    input:
        tokens="<results>/tokens/{model}.json",
    output:
        manifest=ensure("<results>/sample/{model}.json", non_empty=True),
        folder=directory("<results>/sample/{model}"),
    params:
        spec=lambda w: P.sample(w.model),
    log:
        "<logs>/sample/{model}.log",
    benchmark:
        "<benchmarks>/sample/{model}.tsv"
    script:
        "../scripts/sample.py"
