# Checkpoint folders are not declared: Snakemake would delete them before a rerun, and a killed training resumes.
rule train:
    input:
        tokens="<results>/tokens/{model}.json",
        tokenizer=lambda w: study.series[w.model].tokenizer,
    output:
        series=ensure("<results>/weights/{model}/series.json", non_empty=True),
    log:
        "<logs>/train/{model}.log",
    benchmark:
        "<benchmarks>/train/{model}.tsv"
    threads: study.execution.train_threads
    resources:
        mem_mb=memory("train"),
        runtime=runtime("train"),
    params:
        spec=lambda w: P.train(w.model),
    script:
        "../scripts/train.py"
