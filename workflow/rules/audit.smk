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
