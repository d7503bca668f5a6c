def weights_of(wildcards):
    """What an audit waits for: the trained series, or the folder's own files (the folder, if it has none)."""
    if wildcards.model in TRAINED:
        return f"<results>/weights/{wildcards.model}/series.json"
    folder = Path(study.series[wildcards.model].at(wildcards.checkpoint).path)
    found = [p for pattern in ("config.json", "*.safetensors", "*.bin") for p in sorted(folder.glob(pattern))]
    return [str(path) for path in found] or str(folder)


rule audit:
    input:
        weights=weights_of,
    output:
        audit=ensure("<results>/checkpoints/{model}/{checkpoint}.json", non_empty=True),
    params:
        spec=lambda w: P.audit(w.model, w.checkpoint),
    log:
        "<logs>/audit/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/audit/{model}/{checkpoint}.tsv"
    script:
        "../scripts/audit.py"


rule lock:
    input:
        audits=lambda w: audits_of(w.model),
    output:
        lock=ensure("<results>/checkpoints/{model}.lock.json", non_empty=True),
    params:
        spec=lambda w: P.lock(w.model),
    log:
        "<logs>/lock/{model}.log",
    benchmark:
        "<benchmarks>/lock/{model}.tsv"
    script:
        "../scripts/lock.py"
