"""What all made-up tables share: models, steps, sites, buckets, and the key columns of a row."""

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 640, 800)
SITES = ("embed", "block.0", "block.1", "block.2", "block.3", "final_norm")
LAYER = dict(zip(SITES, (-1, 0, 1, 2, 3, 4), strict=True))
BUCKETS = ("b0", "b1", "b2", "b3")
MODELS = ("decoder", "encoder")
WIDTH, RANK, DRAWS = 128, 8, 999


def keys(model: str, step: int, site: str, bucket: str) -> dict:
    progress = step / STEPS[-1]
    phase = "early" if progress <= 0.3 else "late" if progress >= 0.7 else "mid"
    return {
        "study": "demo", "model": model, "seed": 0, "checkpoint": f"step{step}", "step": step,
        "tokens_seen": step * 2048, "progress": progress, "phase": phase, "site": site, "layer": LAYER[site],
        "bucket": bucket,
    }  # fmt: skip
