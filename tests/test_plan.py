"""The plan: its parts add up, it scales with what it should, and it meets what the demo was measured to take."""

import itertools
import json
import subprocess
import sys

import pytest
import yaml

from configs import ROOT, smoke
from isotrace.cli import main
from isotrace.plan import plan
from isotrace.planning.calibration import Calibration
from isotrace.planning.lines import duration, size, text
from isotrace.study import read
from planned_smoke import REFERENCE, planned

SUMMED = ("bucket_files", "bucket_gb", "cache_gb", "checkpoints", "disk_gb", "moments_gb", "tokens", "weights_gb")

# Seconds of one core a job of the demo took on the machine that REFERENCE describes, the median of two runs, with
# the 0.65 s that Snakemake adds; and its peak memory in GB.
DEMO = {
    "train": (105, 0.74),
    "capture": (8.6, 0.80),
    "isotropy": (7.8, 0.26),
    "energy": (4.5, 0.28),
    "geometry": (4.1, 0.22),
    "audit": (5.5, 0.40),
    "frequency": (1.6, 0.18),
    "attention": (1.1, 0.13),
    "figure": (3.0, 0.26),
    "table": (2.1, 0.24),
    "tokens": (4.8, 0.47),
}
DEMO_MINUTES = 6.85


def test_totals_are_sums_of_models_and_of_rules():
    found = planned()
    totals, models, rules = found["totals"], found["models"], found["jobs"]
    for name in SUMMED:
        assert totals[name] == pytest.approx(sum(model[name] for model in models.values()))
    assert totals["jobs"] == 1 + sum(rule["n"] for rule in rules.values())
    assert totals["core_hours"] == pytest.approx(sum(rule["core_hours"] for rule in rules.values()))
    assert totals["memory_gb"] == max(rule["memory_gb"] for rule in rules.values())
    for model in models.values():
        assert model["disk_gb"] >= model["cache_gb"] + model["moments_gb"] + model["weights_gb"]
    assert json.loads(json.dumps(found)) == found


def test_the_demo_takes_what_it_was_measured_to_take_within_a_factor_of_two():
    found = plan(read(ROOT / "config" / "demo.yaml"), REFERENCE, cores=2, results=ROOT / "none")
    assert 0.5 < found["totals"]["hours"] * 60 / DEMO_MINUTES < 2
    assert found["totals"]["jobs"] == 197
    for rule, (seconds, memory) in DEMO.items():
        one = found["jobs"][rule]
        assert 0.5 < one["core_hours"] * 3600 / one["n"] / seconds < 2, rule
        assert 0.5 < one["memory_gb"] / memory < 2, rule


def test_sizes_of_the_smoke_study_by_hand():
    found = planned()["models"]["decoder"]
    assert (found["width"], found["layers"], found["checkpoints"]) == (32, 2, 3)
    assert found["tokens"] == 3 * (24 + 40) * 64
    numbers = 3 * 2 * (128 + 256) * 4 * 2 * 32  # checkpoints, buckets, rows, sites, quantities, width
    assert found["cache_gb"] * 1e9 == 4 * numbers
    assert found["weights_gb"] * 1e9 == 3 * 4 * found["parameters"]


def test_more_cores_never_take_longer_and_no_number_of_them_beats_the_longest_way():
    hours = [planned(cores=cores)["totals"]["hours"] for cores in (1, 2, 3, 16, 10**6, 10**9)]
    assert hours == sorted(hours, reverse=True)
    assert hours[0] == planned()["totals"]["core_hours"]
    assert hours[-1] == hours[-2] > 0


def test_a_machine_twice_as_fast_takes_half_the_time():
    twice = Calibration(gflops=200, start=0.25, write=2000, threads=1)
    slow, fast = planned()["totals"]["core_hours"], planned(speed=twice)["totals"]["core_hours"]
    assert fast / slow == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("edits", "rule", "grown"),
    [
        ({"sample.sequences": {"fit": 240, "eval": 400}}, "capture", "core_hours"),
        ({"energy.draws": {"complement": 999}}, "energy", "core_hours"),
        ({"bases.ranks": [2, 4, 8]}, "energy", "core_hours"),
        ({"geometry.metrics": ["twonn"]}, "geometry", "core_hours"),
        ({"models.decoder.source.batch_size": 64}, "train", "memory_gb"),
        ({"capture.batch_size": 64}, "capture", "memory_gb"),
    ],
    ids=str,
)
def test_a_key_that_costs_more_is_planned_to(edits, rule, grown):
    assert planned(edits)["jobs"][rule][grown] > planned()["jobs"][rule][grown]


def test_moments_grow_with_every_quantity_and_group():
    sizes = [
        planned(edits)["totals"]["moments_gb"]
        for edits in (
            {},
            {"capture.weight_gradients": "moments"},
            {"capture.weight_gradients": "matrices"},
            {"capture.weight_gradients": "matrices", "capture.moments_tokens": "all"},
        )
    ]
    assert all(small < large for small, large in itertools.pairwise(sizes))


def test_rows_are_no_more_than_the_sequences_hold():
    few = planned({"sample.rows_per_bucket": {"fit": 10**6, "eval": 10**6}})["models"]["decoder"]
    assert few["cache_gb"] * 1e9 == 3 * (24 + 40) * 63 * 4 * 2 * 32 * 4


def test_a_warning_stands_for_each_limit_that_is_passed_and_for_no_other():
    assert planned()["warnings"] == []
    tight = {"disk_gb": 0.001, "memory_gb": 0.1, "hours": 0.001, "files": 10}
    assert [line.partition(":")[0] for line in planned({"limits": tight})["warnings"]] == [
        "limits.disk_gb",
        "limits.memory_gb",
        "limits.hours",
        "limits.files",
    ]
    wide = {"disk_gb": 100, "memory_gb": 100, "hours": 100, "files": 10**6}
    assert planned({"limits": wide})["warnings"] == []
    assert "warning: limits.files: " in text(planned({"limits": {"files": 10}}))


def test_every_number_of_the_text_stands_in_the_plan():
    found = planned()
    lines = text(found).splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["decoder", "encoder"]
    assert f"({found['totals']['jobs']} jobs, " in "\n".join(lines)
    assert {line.split()[0] for line in lines[7 : 7 + len(found["jobs"])]} == set(found["jobs"])


@pytest.mark.parametrize(
    ("hours", "said"), [(0.001, "4 s"), (0.5, "30 min"), (1.6, "1.6 h"), (47, "47 h"), (240, "10 days")]
)
def test_durations_are_read_at_a_glance(hours, said):
    assert duration(hours) == said


@pytest.mark.parametrize(
    ("gigabytes", "said"), [(0.0012, "1 MB"), (0.9996, "1 GB"), (12.34, "12.3 GB"), (2500, "2.5 TB")]
)
def test_sizes_are_read_at_a_glance(gigabytes, said):
    assert size(gigabytes) == said


def test_planning_imports_neither_torch_nor_transformers(tmp_path):
    code = """
import sys
from isotrace.plan import plan
from isotrace.planning import show
from isotrace.planning.calibration import Calibration
from isotrace.study import read
speed = Calibration(gflops=100, start=0.5, write=1000, threads=1)
plan(read("config/demo.yaml"), speed, cores=2, results=show.Path("none"))
show.calibrated(show.Path(sys.argv[1]), 1)
print({"torch", "transformers", "datasets", "huggingface_hub"} & set(sys.modules))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "calibration.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_command_prints_the_plan_and_writes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump(smoke()))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "calibration.json").write_text(json.dumps(REFERENCE.as_dict()))
    assert main(["plan", "--configfile", str(config), "--cores", "3"]) == 0
    written = json.loads((tmp_path / "results" / "plan.json").read_text())
    assert written == planned(cores=3)
    assert capsys.readouterr().out == text(planned(cores=3)) + "\n"
    assert main(["plan", "--configfile", str(config), "--cores", "0"]) == 1
    assert capsys.readouterr().err == "isotrace: error: plan --cores: 0 is not 1 or more\n"


@pytest.mark.slow  # where .ci/run has installed boto3
def test_rows_in_a_bucket_are_no_disk():
    pytest.importorskip("boto3", reason="boto3 is not installed (extra s3)")
    here, away = planned(), planned({"storage.cache": "s3://rows/mine"})
    before, after = here["totals"], away["totals"]
    assert (before["bucket_gb"], before["bucket_files"]) == (0, 0)
    assert after["bucket_gb"] > after["cache_gb"] == before["cache_gb"]
    assert after["disk_gb"] + after["bucket_gb"] == pytest.approx(before["disk_gb"])
    assert after["files"] + after["bucket_files"] == before["files"]
    assert after["disk_gb"] > after["moments_gb"] + after["weights_gb"]
    disk, bucket = (line for line in text(away).splitlines() if line.startswith(("disk ", "bucket ")))
    assert "cache" not in disk
    assert bucket.split()[3:5] == size(after["bucket_gb"]).split()
    assert not any(line.startswith("bucket") for line in text(here).splitlines())
    one = max(model["cache_gb"] / model["checkpoints"] for model in away["models"].values())
    assert any(line.endswith(size(one)) for line in away["notes"])
