localrules:
    card,


# One job for all models: starting a process costs more than a card.
rule card:
    """The card of every model: is its representation collapsing, since when, and why."""
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=CARD_TABLES),
        locks=LOCKS,
        scores=sorted(study.scores.values()),
    output:
        expand("<results>/card/{model}.html", model=study.models),
    log:
        "<logs>/card.log",
    benchmark:
        "<benchmarks>/card.tsv"
    params:
        spec=P.card(),
    script:
        "../scripts/card.py"
