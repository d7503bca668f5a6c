# One job a model: comparisons are between checkpoints, and the tokens of its directions are those of one of them.
rule subspaces:
    input:
        bases=bases_of(METHODS),
        moving=[
            f"<results>/bases/{{model}}/{method}-moving.nc"
            for method in study.bases.methods
            if "moving" in study.bases.kinds
        ],
        moments=early_stores("moments"),
        cache=early_stores("cache"),
        tokenizer=lambda w: [] if w.model in study.perceived else study.series[w.model].tokenizer or [],
    output:
        subspaces="<results>/subspaces/{model}.parquet",
        components="<results>/components/{model}.parquet",
    log:
        "<logs>/subspaces/{model}.log",
    benchmark:
        "<benchmarks>/subspaces/{model}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("subspaces"),
        runtime=runtime("subspaces"),
    params:
        spec=lambda w: P.subspaces(w.model),
    script:
        "../scripts/subspaces.py"
