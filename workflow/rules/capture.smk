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
    params:
        spec=lambda w: P.capture(w.model, w.checkpoint),
    script:
        "../scripts/capture.py"


# A shell command is not a path: Snakemake leaves <results> in it as it stands, so the folder comes through params.
rule clean_cache:
    """Remove row stores with their manifests; moments stay, and nothing reruns until something needs rows."""
    log:
        "<logs>/clean_cache.log",
    params:
        cache=f"{study.results}/cache",
    shell:
        "rm -rf {params.cache:q} > {log} 2>&1"
