"""A byte-level BPE tokenizer trained on the corpus, and the digest by which two tokenizers are compared.

Byte-level BPE is Sennrich et al. 2016 over bytes as in Radford et al. 2019; the special tokens are our choice.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from isotrace.checkpoints.own_code import code_options, refused, wants_code
from isotrace.errors import ConfigError, DataError

SPECIALS: dict[str, dict[str, str]] = {
    "clm": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"},
    "mlm": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
}
_BYTES = 256


def train_tokenizer(texts: Iterable[str], folder: str | Path, spec: dict[str, Any]) -> dict[str, Any]:
    """Train byte-level BPE and save it as a folder that ``load_tokenizer`` and ``AutoTokenizer`` open.

    spec: ``vocab_size`` (entries, specials included), ``objective`` (clm | mlm: which special tokens).
    Returns ``{vocab_size, digest}``; the size is smaller than asked if the texts have too few merges.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    roles = SPECIALS.get(spec["objective"])
    if roles is None:
        raise ConfigError(f"objective {spec['objective']!r} has no tokenizer; allowed: {', '.join(SPECIALS)}")
    tokens = list(dict.fromkeys(roles.values()))
    if spec["vocab_size"] < _BYTES + len(tokens):
        raise ConfigError(f"vocab_size {spec['vocab_size']} is below {_BYTES + len(tokens)}: bytes and specials alone")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=spec["vocab_size"],
        special_tokens=tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    # model_max_length stays unset: the model's config decides how long a sequence may be.
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **roles)
    tokenizer.save_pretrained(str(folder))
    return {"vocab_size": len(tokenizer), "digest": tokenizer_digest(tokenizer)}


def write_byte_tokenizer(folder: str | Path) -> None:
    """Save the tokenizer of ByT5 (Xue et al. 2022): 3 special ids, 256 bytes, 125 sentinels."""
    from transformers import ByT5Tokenizer

    ByT5Tokenizer().save_pretrained(str(folder))


def load_tokenizer(folder: str | Path, remote_code: str | None = None) -> Any:
    """The tokenizer of a folder, read offline; DataError if there is none.

    remote_code: the commit whose Python code, fetched into the folder, may run; None runs none.
    """
    code = code_options(Path(folder), remote_code)
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, **code)
    except (OSError, ValueError, KeyError) as error:
        if wants_code(error):
            raise refused(Path(folder)) from error
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{folder}: no tokenizer can be read here ({line}); name a folder that has one") from error


def tokenizer_digest(tokenizer: Any) -> str:
    """sha256 of what decides ids: the loaded vocabulary, merges, pipeline and special ids, not the files' bytes.

    Two library versions may write the same tokenizer differently, or read one file differently; only the second
    changes counts, so only the second changes the digest.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    content = json.loads(backend.to_str()) if backend is not None else {"vocab": tokenizer.get_vocab()}
    # Truncation and padding are states of use, not of the tokenizer.
    behaviour = {name: value for name, value in content.items() if name not in ("truncation", "padding")}
    canonical = json.dumps([behaviour, sorted(tokenizer.all_special_ids)], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def mask_token_id(tokenizer: Any) -> int | None:
    """The id that stands for a hidden token: the mask's, or T5's first sentinel; None where there is neither."""
    if tokenizer.mask_token_id is not None:
        return int(tokenizer.mask_token_id)
    sentinel = tokenizer.get_vocab().get("<extra_id_0>")
    return None if sentinel is None else int(sentinel)
