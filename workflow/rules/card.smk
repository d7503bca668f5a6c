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
        [
            report(
                f"<results>/card/{model}.html",
                caption="../report/card.rst",
                category="Dynamics",
                labels={"name": model, "kind": "card"},
            )
            for model in study.models
        ],
    log:
        "<logs>/card.log",
    benchmark:
        "<benchmarks>/card.tsv"
    params:
        spec=P.card(),
    script:
        "../scripts/card.py"
