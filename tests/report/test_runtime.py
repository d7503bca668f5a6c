"""What a study took: known sums over planted files, and those of another study left out."""

import pytest

from configs import smoke
from isotrace.input_params import plain
from isotrace.report.runtime import names_of, runtime
from isotrace.study import load

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
LOCKS = [{"checkpoints": [{"id": "step0"}, {"id": "step3"}]}]


@pytest.fixture
def folder(tmp_path):
    def put(path, seconds, memory):
        file = tmp_path / f"{path}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{HEAD}{seconds}\t0:00:01\t{memory}\t-\t-\t-\t-\t-\t0.00\t0.1\n")

    put("capture/decoder/step0", 10.0, 500.0)
    put("capture/decoder/step3", 4.0, 800.0)
    put("capture/decoder/step99", 1000.0, 9000.0)  # another study's checkpoint
    put("capture/stranger/step0", 1000.0, 9000.0)
    put("energy/encoder/step3.b1", 2.0, 300.0)
    put("energy/encoder/step3", 2.5, 310.0)
    put("initialise/decoder/init-2", 1.0, 100.0)
    put("tokenizer/runs", 1.5, 90.0)
    put("tables/energy", 3.0, "-")
    put("toy", 0.2, "NA")
    put("report", 5.0, 200.0)
    return tmp_path


def test_jobs_time_and_memory_by_rule_longest_first(folder):
    found = runtime(folder, names_of(plain(load(smoke())), {"runs-seed0": "runs"}, LOCKS))
    assert found["rule"].tolist() == ["capture", "energy", "tables", "tokenizer", "initialise", "toy"]
    rows = found.set_index("rule")
    assert rows.loc["capture"].tolist() == [2, 14.0, 10.0, 800.0]
    assert rows.loc["energy"].tolist() == [2, 4.5, 2.5, 310.0]
    assert rows["peak memory [MB]"].isna().tolist() == [False, False, True, False, False, True]


def test_a_folder_without_any_gives_an_empty_table(tmp_path):
    found = runtime(tmp_path / "none", {"decoder"})
    assert found.empty
    assert found.columns[0] == "rule"
