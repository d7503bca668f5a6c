"""``isotrace new``: a config for a folder of checkpoints, a hub repo or dumped vectors."""

import argparse
import sys

from isotrace.commands.registry import command


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace new``."""
    add = parser.add_argument
    add("place", nargs="?", help="folder or pattern with {step}, of checkpoints or dumps; or ORG/NAME on the hub")
    add("--out", help="the file to write (default NAME.yaml)")
    add("--force", action="store_true", help="write over a file that exists")
    add("--kind", choices=("local", "hub", "vectors"), help="what the place is, where it is guessed wrong")
    add("--name", help="name of the model and the study (default: the place's)")
    add("--objective", choices=("clm", "mlm", "none"), help="the loss (default: what config.json tells)")
    add(
        "--text",
        nargs="+",
        help="files or globs that it is to read, of images or audio too (default: a sample of the Wikipedia)",
    )
    add("--language", help="language of the text, such as en")
    add("--total-steps", type=int, help="steps of the whole training (default: the Trainer's state, or the last step)")
    add("--tokens-per-step", type=int, help="tokens a step, for the column tokens_seen")
    add("--tokenizer", help="folder of the tokenizer, where the checkpoints have none")
    add("--labels", help="naming of a hub repo's revisions (default: the family that fits)")
    add("--array", nargs="+", default=[], metavar="KEY=NAME", help="arrays of a dump that are not recognised by name")
    add("--rows-independent", action="store_true", help="of a dump: no two rows share a text")


@command(
    "new",
    help="write a config for a folder of checkpoints, a hub repo or dumped vectors; asks what flags do not say",
    options=add_options,
    examples=(
        "isotrace new",
        "isotrace new runs/mine --text 'texts/*.txt'",
        "isotrace new EleutherAI/pythia-160m --name pythia --out pythia.yaml",
        "isotrace new 'dumps/step_{step}.npz' --array activations=acts sequence=doc",
    ),
)
def _new(options: argparse.Namespace) -> int:
    from isotrace.draft.ask import Asker
    from isotrace.draft.make import draft

    made = draft(options, Asker(input if sys.stdin.isatty() else None))
    made.file.parent.mkdir(parents=True, exist_ok=True)
    made.file.write_text(made.text, encoding="utf-8")
    print(f"{made.found}\n{made.file}: written; next:")
    print("\n".join(f"  {line}" for line in made.commands))
    return 0
