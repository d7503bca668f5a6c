def tokenizer_of(wildcards):
    """The folder of the tokenizer: trained here, named in the config, or the last checkpoint's own."""
    source = study.models[wildcards.model].source
    if wildcards.model in TRAINED:
        return f"<results>/weights/{wildcards.model}/tokenizer/tokenizer.json"
    return f"{source.tokenizer or study.series[wildcards.model].found[-1].path}/tokenizer.json"


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
