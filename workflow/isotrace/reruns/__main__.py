"""``python -m isotrace.reruns`` writes the tables of what a change reruns; a test fails when they drift.

Apart from `isotrace.configdocs`, because Snakemake's graph of some two hundred configs takes about a minute.
"""

from isotrace.input_params import ROOT
from isotrace.reruns.table import PAGE, page

if __name__ == "__main__":
    (ROOT / PAGE).write_text(page(), encoding="utf-8")
