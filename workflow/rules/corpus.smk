rule corpus:
    output:
        manifest=ensure("<results>/corpus/{corpus}.json", non_empty=True),
        documents="<results>/corpus/{corpus}/documents.parquet",
    params:
        spec=lambda w: P.corpus(w.corpus),
    log:
        "<logs>/corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/corpus/{corpus}.tsv"
    script:
        "../scripts/corpus.py"
