"""The lock of a made-up series, with a finding and what was left out."""

LOCK = {
    "model": "decoder",
    "provider": "local",
    "total_steps": 2000,
    "checkpoints": [
        {
            "id": "step1000",
            "step": 1000,
            "tokens_seen": None,
            "source": {"commit": None},
            "dtypes": {"BF16": 9, "F32": 2},
            "dtype": "BF16",
            "tensors_digest": "0123456789abcdef",
            "duplicate_of": None,
            "shared_tensors_with": {"step10": ["a", "b"]},
            "neighbour_distance": 0.51234,
            "neighbour_correlation": 0.04,
            "findings": [{"finding": "other_run", "severity": "warning", "detail": "<i>uncorrelated</i>"}],
        }
    ],
    "left_out": [{"name": "tmp-checkpoint-9", "reason": "half-written"}],
}
