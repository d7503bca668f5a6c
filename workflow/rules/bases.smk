rule bases:
    input:
        moments=early_stores("moments"),
        cache=branch(lambda w: w.method in READ_ROWS, then=early_stores("cache"), otherwise=[]),
    output:
        bases="<results>/bases/{model}/{method}.nc",
    log:
        "<logs>/bases/{model}/{method}.log",
    benchmark:
        "<benchmarks>/bases/{model}/{method}.tsv"
    wildcard_constraints:
        method="|".join(METHODS),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("bases"),
        runtime=runtime("bases"),
    params:
        spec=lambda w: P.bases(w.model, w.method),
    script:
        "../scripts/bases.py"


rule moving:
    """The bases refitted at every checkpoint, gathered for outside readers; analyses fit their own checkpoint's."""
    input:
        moments=lambda w: every_store("moments", w.model),
        cache=lambda w: every_store("cache", w.model) if w.method in READ_ROWS else [],
    output:
        bases="<results>/bases/{model}/{method}-moving.nc",
    log:
        "<logs>/moving/{model}/{method}.log",
    benchmark:
        "<benchmarks>/moving/{model}/{method}.tsv"
    wildcard_constraints:
        method="|".join(study.bases.methods),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("moving"),
        runtime=runtime("moving"),
    params:
        spec=lambda w: P.moving(w.model, w.method),
    script:
        "../scripts/moving.py"


rule moving_bases:
    """The gathered moving bases, where the config asks for them."""
    input:
        [
            f"<results>/bases/{model}/{method}-moving.nc"
            for model in study.models
            for method in study.bases.methods
            if "moving" in study.bases.kinds
        ],
