# Models of images and audio: one job takes the place of tokens, sample and capture, and fills the same stores.
rule perceive:
    input:
        audit="<results>/checkpoints/{model}/{checkpoint}.json",
        files=lambda w: media_files(w.model),
        documents=lambda w: documents_of(w.model),
        processor=lambda w: study.series[w.model].tokenizer or [],
        weights=fetched,
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
        model=any_of(study.perceived),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("perceive"),
        runtime=runtime("perceive"),
        gpu=R.gpus(),
        rows_at=study.storage.cache or "",
    params:
        spec=lambda w: P.perceive(w.model, w.checkpoint),
    script:
        "../scripts/perceive.py"
