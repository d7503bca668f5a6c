rule corpus:
    output:
        manifest=ensure("<results>/corpus/{corpus}.json", non_empty=True),
        documents="<results>/corpus/{corpus}/documents.parquet",
    log:
        "<logs>/corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/corpus/{corpus}.tsv"
    params:
        spec=lambda w: P.corpus(w.corpus),
    script:
        "../scripts/corpus.py"
