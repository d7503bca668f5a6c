localrules:
    prefetch,
    prefetch_and_clean,
    prefetch_tokenizer,


# The folder appears whole: a killed download goes on in a folder of its own, which Snakemake does not know.
# Audits and captures come before further downloads, so that weights that are cleaned never lie about together.
rule prefetch:
    output:
        folder=directory("<results>/weights/{model}/{checkpoint}"),
    log:
        "<logs>/prefetch/{model}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/prefetch/{model}/{checkpoint}.tsv"
    wildcard_constraints:
        model=any_of(m for m in study.models if keeps_weights(m)),
    priority: -1
    resources:
        downloads=study.execution.downloads,
        shared=study.storage.weights or "",
    params:
        spec=lambda w: P.prefetch(w.model, w.checkpoint),
    script:
        "../scripts/prefetch.py"


use rule prefetch as prefetch_and_clean with:
    output:
        folder=temp(directory("<results>/weights/{model}/{checkpoint}")),
    wildcard_constraints:
        model=any_of(m for m in study.models if not keeps_weights(m)),


rule prefetch_tokenizer:
    output:
        manifest="<results>/weights/{model}/tokenizer/prefetch.json",
        config="<results>/weights/{model}/tokenizer/config.json",
    log:
        "<logs>/prefetch/{model}/tokenizer.log",
    benchmark:
        "<benchmarks>/prefetch/{model}/tokenizer.tsv"
    resources:
        downloads=study.execution.downloads,
        shared=study.storage.weights or "",
    params:
        spec=lambda w: P.prefetch_tokenizer(w.model),
    script:
        "../scripts/prefetch_tokenizer.py"
