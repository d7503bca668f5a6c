"""The stores that models of images and sound fill, row by row against the model itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeing import FAMILIES, architecture

from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.checkpoints.initialise import initialise
from isotrace.checkpoints.load import load_model
from isotrace.corpus.documents import Document, read_texts, write_documents
from isotrace.errors import ConfigError, DataError
from isotrace.perception.characters import sequences_of
from isotrace.perception.energy import patch_energy
from isotrace.perception.masks import hidden_patches
from isotrace.perception.pieces import pieces_of
from isotrace.perception.processor import Processor
from isotrace.perception.run import perceive
from isotrace.readers import missing_of, model_sites, read_bucket, read_heads
from isotrace.store import is_tombstone, open_store, read_manifest

PICTURES = {
    "source": "images",
    "paths": ["python:sklearn/datasets/images/china.jpg", "python:sklearn/datasets/images/flower.jpg"],
    "tiles": 3,
}
TONES = {"source": "tones", "clips": 18, "seconds": 0.5}
SPEC: dict[str, Any] = {
    "model": "m",
    "checkpoint": "c",
    "objective": "none",
    "sequences": {"fit": 5, "eval": 6},
    "rows_per_bucket": {"fit": 20, "eval": 30},
    "eval_fraction": 0.5,
    "names": ["b0", "b1"],
    "energy": True,
    "sites": None,
    "dtype": "float32",
    "device": "cpu",
    "batch_size": 4,
    "store": {"dtype": "float32"},
    "seed": 0,
    "threads": 1,
    "code": "",
}


def spec_of(modality: str, **changes: Any) -> dict[str, Any]:
    return SPEC | {"task": modality, "corpus": PICTURES if modality == "image" else TONES} | changes


def drawn(family: str, folder: Path, seed: int = 0, **fields: Any) -> Path:
    given = {"seed": seed, "objective": FAMILIES[family][0], "architecture": architecture(family) | fields}
    initialise(given, None, None, folder)
    return folder


def audited(folder: Path, modality: str) -> Path:
    source = {"path": str(folder), "revision": None, "subfolder": None, "commit": None}
    known = {"id": "c", "step": 0, "tokens_seen": None, "config": None, "remote_code": None, "source": source}
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(audit_checkpoint(folder, known | {"objective": modality})))
    return file


def perceived(folder: Path, spec: dict[str, Any], documents: Path | None = None) -> dict[str, Path]:
    made = {name: folder.parent / name / folder.name / "c.json" for name in ("cache", "moments", "heads")}
    for path in made.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    perceive(audited(folder, spec["task"]), **made, spec=spec, documents=documents)
    return made


def test_rows_are_the_patches_that_they_are_named_for(tmp_path: Path) -> None:
    folder = drawn("deit", tmp_path / "a")
    made = perceived(folder, spec_of("image"))
    assert model_sites(made["cache"]) == ("embed", "block.0", "block.1", "block.2", "final_norm")
    _, values, _ = Processor(folder, "image").read(list(pieces_of(PICTURES, rate=0, seed=0)))
    model = load_model(folder, "image")
    with torch.no_grad():
        hidden = model(torch.from_numpy(values), output_hidden_states=True).hidden_states
    energy = patch_energy(values, (4, 4))
    root, highest = open_store(made["cache"]), -1.0
    for name in SPEC["names"]:
        rows = read_bucket(root, name, "eval")
        assert rows.activations.shape == (5, 30, 16)
        at = (rows.sequence, rows.position + 2)  # after the class and the distillation token
        for site, state in zip(("embed", "block.0", "block.1"), hidden, strict=False):
            found = rows.activations[rows.sites.index(site)]
            np.testing.assert_allclose(found, state.numpy()[at], rtol=1e-4, atol=1e-5)
        own = energy[rows.sequence, rows.position]
        assert own.min() >= highest  # buckets rise in energy
        highest = own.max()
        assert np.isnan(rows.loss).all()
        assert set(rows.token_id) == {-1}
        assert np.any(rows.gradients[0] != 0, axis=1).all()
        assert not rows.gradients[-1].any()  # the head reads the class token alone
    assert "gradient" not in missing_of(made["cache"])
    layers = read_heads(made["heads"])
    assert len(layers) == 3
    for one in layers:  # sixteen patches of six pieces are queries, the class and the distillation token are not
        assert one.total.q_count.sum() == one.total.k_count.sum() == 6 * 16
        assert len(one.groups) == 6


@pytest.mark.parametrize("family", ["wav2vec2", "whisper"])
def test_clips_fill_stores_with_gradients_everywhere(family: str, tmp_path: Path) -> None:
    made = perceived(drawn(family, tmp_path / "a"), spec_of("audio", names=["all"], energy=False))
    rows = read_bucket(open_store(made["cache"]), "all", "eval")
    assert rows.activations.shape[1:] == (30, 16)
    assert np.any(rows.gradients != 0, axis=2).all()
    frames = read_heads(made["heads"])[0].total.q_count.sum() / 6
    if family == "whisper":  # half a second of the second that it is made for
        assert rows.position.max() < 25
        assert frames == 25
    else:
        assert frames > rows.position.max()


@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("vit", {"architectures": ["ViTForMaskedImageModeling"], "encoder_stride": 4}),
        ("wav2vec2", {"architectures": ["Wav2Vec2ForPreTraining"], "mask_time_prob": 0.3}),
    ],
)
def test_what_was_hidden_is_marked_and_has_gradients(family: str, fields: dict[str, Any], tmp_path: Path) -> None:
    folder = drawn(family, tmp_path / "a", **fields)
    assert type(load_model(folder, FAMILIES[family][0])).__name__ == fields["architectures"][0]
    made = perceived(folder, spec_of(FAMILIES[family][0], names=["all"], energy=False))
    rows = read_bucket(open_store(made["cache"]), "all", "eval")
    assert 0 < rows.masked.sum() < len(rows.masked)
    asked = np.any(rows.gradients[-1] != 0, axis=1)
    assert np.array_equal(asked, rows.masked)  # of the last site, only what was hidden is asked
    assert np.any(rows.gradients[0] != 0, axis=1).all()
    assert missing_of(made["cache"])["loss"] == "the loss of what is hidden is not kept by row"
    assert len(read_heads(made["heads"])) == 3


def test_attention_is_that_of_the_pass_in_which_patches_are_hidden(tmp_path: Path) -> None:
    folder = drawn("vit", tmp_path / "a", architectures=["ViTForMaskedImageModeling"], encoder_stride=4)
    made = perceived(folder, spec_of("image", names=["all"], energy=False))
    pieces = np.unique(read_bucket(open_store(made["cache"]), "all", "eval").sequence)
    assert len(pieces) == 6
    model: Any = load_model(folder, "image")
    _, values, _ = Processor(folder, "image").read(list(pieces_of(PICTURES, rate=0, seed=0)))
    hidden = torch.from_numpy(hidden_patches(model.config, pieces, 16, 0).at)
    first = model.vit.layers[0]
    read = model.vit.embeddings(torch.from_numpy(values[pieces]), bool_masked_pos=hidden)
    queries = first.attention.q_proj(first.layernorm_before(read))[:, 1:].sum(dim=(0, 1))
    found = read_heads(made["heads"])[0].total.q_sum.sum(axis=0).ravel()
    np.testing.assert_allclose(found, queries.numpy(), rtol=1e-4, atol=1e-4)


def test_the_same_rows_at_every_checkpoint_of_a_series(tmp_path: Path) -> None:
    seen = [perceived(drawn("vit", tmp_path / str(seed), seed), spec_of("image")) for seed in (0, 1)]
    digests = [read_manifest(made["cache"])["attributes"]["sample_digest"] for made in seen]
    first, second = (read_bucket(open_store(made["cache"]), "b1", "fit") for made in seen)
    assert digests[0] == digests[1]
    assert np.array_equal(first.position, second.position)
    assert not np.array_equal(first.activations, second.activations)


def test_a_checkpoint_without_a_head_says_so(tmp_path: Path) -> None:
    folder = drawn("dinov2", tmp_path / "a")
    model = load_model(folder, "image")
    model.base_model.save_pretrained(folder)
    made = perceived(folder, spec_of("image"))
    missing = missing_of(made["cache"])
    assert missing["gradient"] == missing["loss"] == "the model has no head to differentiate"
    rows = read_bucket(open_store(made["cache"]), "b0", "eval")
    assert rows.activations.any()
    assert not rows.gradients.any()


def test_a_broken_checkpoint_leaves_tombstones(tmp_path: Path) -> None:
    folder = drawn("vit", tmp_path / "a")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    made = perceived(folder, spec_of("image"))
    assert all(is_tombstone(path) for path in made.values())


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    folder = drawn("vit", tmp_path / "a")
    with pytest.raises(DataError, match="leave fit or eval empty"):
        perceived(folder, spec_of("image", corpus=PICTURES | {"tiles": 1, "paths": PICTURES["paths"][:1]}))
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match=r"no preprocessor_config.json"):
        perceived(folder, spec_of("image"))
    odd = architecture("whisper") | {"max_source_positions": 60}
    with pytest.raises(ConfigError, match="60 is no multiple of 50"):
        initialise({"seed": 0, "objective": "audio", "architecture": odd}, None, None, tmp_path / "b")
    with pytest.raises(ConfigError, match="transformers has no audio classifier of this type"):
        initialise({"seed": 0, "objective": "audio", "architecture": architecture("vit")}, None, None, tmp_path / "b")


def test_characters_are_read_at_every_depth_of_canine(tmp_path: Path) -> None:
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    small = size | {"max_position_embeddings": 64, "num_hash_buckets": 32, "local_transformer_stride": 16}
    folder, text = tmp_path / "a", tmp_path / "documents.parquet"
    drawn_like = {"seed": 0, "objective": "characters", "architecture": {"model_type": "canine", **small}}
    initialise(drawn_like, None, None, folder)
    words = np.random.default_rng(0).choice(["naïve", "the", "a", "of", "x"], (20, 60))
    write_documents(text, [Document(str(i), "", " ".join(row)) for i, row in enumerate(words)])
    by = {"kind": "mass", "number": 2, "edges": None, "by": "input"}
    spec = spec_of("characters", energy=False, length=32, buckets=by, exclude_first=True, corpus={})
    made = perceived(folder, spec, text)
    ids = sequences_of(read_texts(text), 32)
    model = load_model(folder, "characters")
    for name in SPEC["names"]:
        rows = read_bucket(open_store(made["cache"]), name, "eval")
        assert rows.sites == ("embed", "block.0", "block.1", "block.2", "block.3")
        assert np.array_equal(rows.token_id, ids[rows.sequence, rows.position])
        assert not np.any(rows.position % 4)
        assert rows.position.min() > 0
        with torch.no_grad():
            states = model(torch.from_numpy(ids[rows.sequence].astype(np.int64)), output_hidden_states=True)
        # What transformers gives out: characters before and after their first block, molecules, the last block.
        each = np.arange(len(rows.sequence))
        molecules = [state for state in states.hidden_states if state.shape[1] == 8]
        np.testing.assert_allclose(
            rows.activations[3], molecules[-1].numpy()[each, rows.position // 4 + 1], rtol=1e-4, atol=1e-5
        )
        last = states.last_hidden_state.numpy()[each, rows.position]
        np.testing.assert_allclose(rows.activations[4], last, rtol=1e-4, atol=1e-5)
    assert set(missing_of(made["cache"]).values()) == {"the model has no head to differentiate"}
    assert len(read_heads(made["heads"])) == 4
