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
    params:
        spec=lambda w: P.sample(w.model),
    script:
        "../scripts/sample.py"
