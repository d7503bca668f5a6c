rule tokenizer:
    input:
        documents=lambda w: f"<results>/corpus/{study.corpus_of(w.model)}/documents.parquet",
    output:
        tokenizer="<results>/weights/{model}/tokenizer/tokenizer.json",
    params:
        spec=lambda w: P.tokenizer(w.model),
    log:
        "<logs>/tokenizer/{model}.log",
    benchmark:
        "<benchmarks>/tokenizer/{model}.tsv"
    script:
        "../scripts/tokenizer.py"


rule tokens:
    input:
        documents=lambda w: f"<results>/corpus/{study.corpus_of(w.model)}/documents.parquet",
        tokenizer=tokenizer_of,
    output:
        manifest=ensure("<results>/tokens/{model}.json", non_empty=True),
        folder=directory("<results>/tokens/{model}"),
    params:
        spec=lambda w: P.tokens(w.model),
    log:
        "<logs>/tokens/{model}.log",
    benchmark:
        "<benchmarks>/tokens/{model}.tsv"
    script:
        "../scripts/tokens.py"
