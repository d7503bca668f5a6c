rule audit_checkpoint:
    input:
        weights=weights_of,
    output:
        audit=ensure("<results>/checkpoints/{model}/{checkpoint}.json", non_empty=True),
    log:
        "<logs>/audit/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/audit/{model}/{checkpoint}.tsv"
    params:
        spec=lambda w: P.audit(w.model, w.checkpoint),
    script:
        "../scripts/audit.py"


rule lock:
    input:
        audits=lambda w: audits_of(w.model),
    output:
        lock=ensure("<results>/checkpoints/{model}.lock.json", non_empty=True),
    log:
        "<logs>/lock/{model}.log",
    benchmark:
        "<benchmarks>/lock/{model}.tsv"
    params:
        spec=lambda w: P.lock(w.model),
    script:
        "../scripts/lock.py"
