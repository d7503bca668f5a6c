# Of a group of runs there is one tokenizer, under the name of the group.
rule tokenizer:
    input:
        documents=lambda w: f"<results>/corpus/{study.corpus_of(study.run_of(w.model))}/documents.parquet",
    output:
        tokenizer="<results>/weights/{model}/tokenizer/tokenizer.json",
    log:
        "<logs>/tokenizer/{model}.log",
    benchmark:
        "<benchmarks>/tokenizer/{model}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("tokenizer"),
        runtime=runtime("tokenizer"),
    params:
        spec=lambda w: P.tokenizer(study.run_of(w.model)),
    script:
        "../scripts/tokenizer.py"


rule byte_tokenizer:
    output:
        tokenizer="<results>/weights/{model}/tokenizer/tokenizer_config.json",
    log:
        "<logs>/tokenizer/{model}.log",
    benchmark:
        "<benchmarks>/tokenizer/{model}.tsv"
    localrule: True
    params:
        spec=P.byte_tokenizer(),
    script:
        "../scripts/byte_tokenizer.py"


rule tokens:
    input:
        documents=lambda w: f"<results>/corpus/{study.corpus_of(w.model)}/documents.parquet",
        tokenizer=lambda w: study.series[w.model].tokenizer,
        shape=lambda w: study.series[w.model].shape or [],
    output:
        manifest=ensure("<results>/tokens/{model}.json", non_empty=True),
        folder=directory("<results>/tokens/{model}"),
    log:
        "<logs>/tokens/{model}.log",
    benchmark:
        "<benchmarks>/tokens/{model}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("tokens"),
        runtime=runtime("tokens"),
    params:
        spec=lambda w: P.tokens(w.model),
    script:
        "../scripts/tokens.py"
