rule dequantise:
    input:
        file=lambda w: study.models[w.model].source.path,
        tokenizer=lambda w: tokenizer_beside(w.model),
    output:
        manifest=ensure("<results>/weights/{model}/dequantised.json", non_empty=True),
        config="<results>/weights/{model}/dequantised/config.json",
        tokenizer="<results>/weights/{model}/dequantised/tokenizer.json",
    log:
        "<logs>/dequantise/{model}.log",
    benchmark:
        "<benchmarks>/dequantise/{model}.tsv"
    threads: study.execution.numeric_threads
    resources:
        mem_mb=memory("dequantise"),
        runtime=runtime("dequantise"),
    params:
        spec=lambda w: P.dequantise(w.model),
    script:
        "../scripts/dequantise.py"
