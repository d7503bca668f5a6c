def previous_cache(wildcards):
    """The cache of the checkpoint before, for displacement; none for the first."""
    ids = study.series[wildcards.model].ids
    i = ids.index(wildcards.checkpoint)
    wanted = "displacement_in_tangent" in study.geometry.metrics and i > 0
    return [f"<results>/cache/{wildcards.model}/{ids[i - 1]}.json"] if wanted else []


rule geometry:
    input:
        cache="<results>/cache/{model}/{checkpoint}.json",
        moments="<results>/moments/{model}/{checkpoint}.json",
        bases=bases_of,
        previous=previous_cache,
    output:
        tables=per_bucket("geometry"),
    params:
        spec=lambda w: P.analysis("geometry", w.model),
    log:
        per_bucket_side("logs", "geometry", "log"),
    benchmark:
        per_bucket_side("benchmarks", "geometry", "tsv")
    script:
        "../scripts/geometry.py"
