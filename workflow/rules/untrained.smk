# One job a model draws every seed: no checkpoint is written, for nothing else reads them.
rule untrained:
    input:
        like=lambda w: study.series[w.model].shape or audits_of(w.model)[0],
        sample="<results>/sample/{model}.json",
    output:
        table="<results>/untrained/{model}.parquet",
    log:
        "<logs>/untrained/{model}.log",
    benchmark:
        "<benchmarks>/untrained/{model}.tsv"
    wildcard_constraints:
        model=any_of(study.redrawn),
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("untrained"),
        runtime=runtime("untrained"),
    params:
        spec=lambda w: P.untrained(w.model),
    script:
        "../scripts/untrained.py"
