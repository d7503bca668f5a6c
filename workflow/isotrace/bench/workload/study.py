"""A study of any size of which nothing exists: series files as if resolved, one text, no weights.

Our choice: every checkpoint is on a hub, so that each of them is fetched, audited, captured and analysed.
"""

import json
from pathlib import Path

import yaml

from isotrace.bench.registry import Sizes

_STEP = 1000
_COMMIT = "0" * 40
_CONFIG = {"model_type": "gpt_neox", "hidden_size": 64, "max_position_embeddings": 128, "vocab_size": 512}
_FILE = {"bytes": 1000, "sha256": "0" * 64}


def write_study(folder: Path, sizes: Sizes, *, batched: bool) -> Path:
    """The config of ``models`` models of ``checkpoints`` checkpoints and ``buckets`` buckets; its files beside it.

    batched: a job holds all buckets of a checkpoint.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text("one text", encoding="utf-8")
    names = [f"m{i}" for i in range(sizes["models"])]
    for name in names:
        series = folder / "config" / "series" / f"{name}.json"
        series.parent.mkdir(parents=True, exist_ok=True)
        series.write_text(json.dumps(_series(name, sizes["checkpoints"])), encoding="utf-8")
    config = {
        "study": "bench",
        "corpora": {"text": {"source": "files", "paths": ["text.txt"]}},
        "models": {name: {"objective": "clm", "source": {"kind": "hub", "repo": f"org/{name}"}} for name in names},
        "buckets": {"number": sizes["buckets"]},
        "execution": {"batch_buckets": batched},
    }
    file = folder / "bench.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


def _series(name: str, checkpoints: int) -> dict[str, object]:
    repo = f"org/{name}"
    entries = []
    for i in range(checkpoints):
        label = f"step{_STEP * i}"
        place = {"repo": repo, "revision": label, "commit": _COMMIT}
        files = {"config.json": _FILE, "model.safetensors": _FILE}
        entries.append({"label": label, "step": _STEP * i, **place, "files": files})
    tokenizer = {"repo": repo, "revision": "main", "commit": _COMMIT, "files": {"tokenizer.json": _FILE}}
    total = _STEP * max(checkpoints - 1, 1)
    return {
        "model": name,
        "repo": repo,
        "total_steps": total,
        "checkpoints": entries,
        "tokenizer": tokenizer,
        "config": _CONFIG,
    }


def write_bare(folder: Path, sizes: Sizes, *, single: int, fanned: int) -> Path:
    """A Snakefile without params, functions or isotrace: a chain of ``single`` jobs a checkpoint, ``fanned`` a bucket.

    Each bucket's jobs read the end of its chain.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = [f"{m}/{c}" for m in range(sizes["models"]) for c in range(sizes["checkpoints"])]
    lines = [f"places = {places!r}", "rule all:", "    input:"]
    lines += [f'        expand("b{k}/{{p}}/{{b}}", p=places, b=range({sizes["buckets"]})),' for k in range(fanned)]
    for k in range(single):
        lines += [f"rule one{k}:"]
        lines += [f'    input: "a{k - 1}/{{m}}/{{c}}"'] if k else []
        lines += [f'    output: "a{k}/{{m}}/{{c}}"', '    shell: "touch {output}"']
    for k in range(fanned):
        lines += [f"rule each{k}:", f'    input: "a{single - 1}/{{m}}/{{c}}"']
        lines += [f'    output: "b{k}/{{m}}/{{c}}/{{b}}"', '    shell: "touch {output}"']
    file = folder / "Snakefile"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
