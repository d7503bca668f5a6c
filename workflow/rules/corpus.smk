# The one job beside prefetch that may need the network, which compute nodes often lack: hence a local rule.
rule corpus:
    input:
        parts=lambda w: [f"<results>/corpus/{part}/documents.parquet" for part in study.parts_of(w.corpus)],
    output:
        manifest=ensure("<results>/corpus/{corpus}.json", non_empty=True),
        documents="<results>/corpus/{corpus}/documents.parquet",
    log:
        "<logs>/corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/corpus/{corpus}.tsv"
    localrule: True
    params:
        spec=lambda w: P.corpus(w.corpus),
    script:
        "../scripts/corpus.py"
