# Vectors dumped elsewhere: an audit and an import take the place of text, checkpoints and capture.
rule audit_vectors:
    input:
        dump=lambda w: dump_of(w.model, w.checkpoint),
    output:
        audit="<results>/checkpoints/{model}/{checkpoint}.json",
    log:
        "<logs>/audit/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/audit/{model}/{checkpoint}.tsv"
    wildcard_constraints:
        model=any_of(study.dumped),
    priority: 1
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("audit"),
        runtime=runtime("audit"),
    params:
        spec=lambda w: P.audit_vectors(w.model, w.checkpoint),
    script:
        "../scripts/audit_vectors.py"


rule vectors:
    input:
        audit="<results>/checkpoints/{model}/{checkpoint}.json",
        counts=lambda w: study.models[w.model].source.counts or [],
    output:
        cache=ensure("<results>/cache/{model}/{checkpoint}.json", non_empty=True),
        moments=ensure("<results>/moments/{model}/{checkpoint}.json", non_empty=True),
        heads=ensure("<results>/attention/{model}/{checkpoint}.json", non_empty=True),
        folders=[
            directory("<results>/cache/{model}/{checkpoint}"),
            directory("<results>/moments/{model}/{checkpoint}"),
            directory("<results>/attention/{model}/{checkpoint}"),
        ],
    log:
        "<logs>/capture/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/capture/{model}/{checkpoint}.tsv"
    wildcard_constraints:
        model=any_of(study.dumped),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("vectors"),
        runtime=runtime("vectors"),
        rows_at=study.storage.cache or "",
    params:
        spec=lambda w: P.vectors(w.model, w.checkpoint),
    script:
        "../scripts/vectors.py"


rule frequency_vectors:
    input:
        cache="<results>/cache/{model}/{checkpoint}.json",
    output:
        table="<results>/frequency/{model}/{checkpoint}.parquet",
        points="<results>/frequency_points/{model}/{checkpoint}.parquet",
    log:
        "<logs>/frequency/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/frequency/{model}/{checkpoint}.tsv"
    wildcard_constraints:
        model=any_of(study.dumped + study.perceived),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("frequency"),
        runtime=runtime("frequency"),
    params:
        spec=lambda w: P.frequency(w.model),
    script:
        "../scripts/frequency_vectors.py"


# Where buckets are batched, the job of a stage writes those of the study: a model with the one bucket `all` has its own.
if study.execution.batch_buckets:

    use rule energy as energy_all with:
        output:
            tables=["<results>/energy/{model}/{checkpoint}/all.parquet"],

    use rule controls as controls_all with:
        output:
            controls=["<results>/controls/{model}/{checkpoint}/all.parquet"],
            rank_curve=["<results>/rank_curve/{model}/{checkpoint}/all.parquet"],

    use rule isotropy as isotropy_all with:
        output:
            tables=["<results>/isotropy/{model}/{checkpoint}/all.parquet"],

    use rule geometry as geometry_all with:
        output:
            tables=["<results>/geometry/{model}/{checkpoint}/all.parquet"],
