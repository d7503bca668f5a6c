# One job a checkpoint writes every bucket: loading a model once a bucket would only repeat the work.
# The parent folder is declared, so that Snakemake's timestamp file stays out of the Zarr root.
rule capture:
    input:
        audit="<results>/checkpoints/{model}/{checkpoint}.json",
        sample="<results>/sample/{model}.json",
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
        model=any_of(study.reading),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("capture"),
        runtime=runtime("capture"),
        gpu=R.gpus(),
        rows_at=study.storage.cache or "",
    params:
        spec=lambda w: P.capture(w.model, w.checkpoint),
    script:
        "../scripts/capture.py"


# Passes that fill stores whose rows were cleaned are refused before any job, unless the config allows them.
onstart:
    try:
        refuse(rows_written(workflow.dag.needrun_jobs()), allowed=study.recapture)
    except ConfigError as error:
        sys.exit(f"isotrace: error: {error}")


# A folder that is neither input nor output is not a path: <results> would be left as it stands, so params hold it.
rule clean_cache:
    """Remove row stores with their manifests; moments stay, and nothing reruns until something needs rows."""
    log:
        "<logs>/clean_cache.log",
    resources:
        rows_at=study.storage.cache or "",
    params:
        spec=P.clean_cache(),
        cache=f"{study.results}/cache",
    script:
        "../scripts/clean_cache.py"
