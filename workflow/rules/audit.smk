if study.execution.batch_audits:
    for model in study.loaded:

        rule:
            name:
                f"audit_{model}"
            input:
                weights=[weights_of(model, c) for c in study.series[model].ids],
            output:
                audits=audits_of(model),
            log:
                f"<logs>/audit/{model}.log",
            benchmark:
                f"<benchmarks>/audit/{model}.tsv"
            priority: 1
            threads: study.execution.numeric_threads
            resources:
                mem_mb=memory("audit", model),
                runtime=runtime("audit", model),
            params:
                spec=P.audit(model, study.series[model].ids),
            script:
                "../scripts/audit.py"

else:

    rule audit_checkpoint:
        input:
            weights=lambda w: weights_of(w.model, w.checkpoint),
        output:
            audits=["<results>/checkpoints/{model}/{checkpoint}.json"],
        log:
            "<logs>/audit/{model}/{checkpoint}.log",
        benchmark:
            "<benchmarks>/audit/{model}/{checkpoint}.tsv"
        wildcard_constraints:
            model=any_of(study.loaded),
        priority: 1
        threads: study.execution.numeric_threads
        resources:
            mem_mb=memory("audit"),
            runtime=runtime("audit"),
        params:
            spec=lambda w: P.audit(w.model, [w.checkpoint]),
        script:
            "../scripts/audit.py"


rule lock:
    input:
        audits=lambda w: audits_of(w.model),
        committed=lambda w: committed_lock(w.model) if study.locked else [],
    output:
        lock=ensure("<results>/checkpoints/{model}.lock.json", non_empty=True),
    log:
        "<logs>/lock/{model}.log",
    benchmark:
        "<benchmarks>/lock/{model}.tsv"
    priority: 1
    localrule: True
    params:
        spec=lambda w: P.lock(w.model),
    script:
        "../scripts/lock.py"
