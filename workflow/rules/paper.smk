PAPER_TABLES = ["energy", "isotropy", "geometry", "claims", "dynamics"]


rule paper:
    """LaTeX macros, tables and a sample page with every figure, for a paper."""
    input:
        tables=expand("<results>/tables/{stage}.parquet", stage=PAPER_TABLES),
        figures=expand("<results>/figures/{figure}.{end}", figure=study.figures.names, end=["pdf", "tex"]),
        locks=LOCKS,
        declared=CLAIMS,
        style=STYLE,
    output:
        macros="<results>/paper/macros.tex",
        sample="<results>/paper/sample.tex",
        drawing="<results>/paper/drawing.json",
        tables=expand("<results>/paper/tables/{name}.tex", name=["energy", "isotropy", "cosine", "claims", "tests"]),
    log:
        "<logs>/paper.log",
    benchmark:
        "<benchmarks>/paper.tsv"
    localrule: True
    params:
        spec=P.paper(),
    script:
        "../scripts/paper.py"
