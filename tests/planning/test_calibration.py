"""Calibration: positive speeds, measured once, refused in one line when its file is damaged."""

import json

import pytest

from isotrace.errors import DataError
from isotrace.planning import show
from isotrace.planning.calibration import Calibration, calibrate, calibration_of


def test_a_machine_is_measured_and_its_file_reads_back(tmp_path):
    measured = calibrate(1, tmp_path / "results")
    assert min(measured.gflops, measured.start, measured.write) > 0
    assert calibration_of(json.loads(json.dumps(measured.as_dict())), "file") == measured
    assert list((tmp_path / "results").iterdir()) == []


def test_it_is_measured_once_for_a_number_of_threads(tmp_path):
    file = tmp_path / "calibration.json"
    known = Calibration(gflops=7, start=1, write=9, threads=1)
    file.write_text(json.dumps(known.as_dict()))
    assert show.calibrated(file, 1) == known
    again = show.calibrated(file, 2)
    assert again.threads == 2
    assert show.calibrated(file, 2) == again


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not readable as JSON"),
        ('{"gflops": 1}', "not a calibration"),
        ('{"gflops": 0, "start": 1, "write": 1, "threads": 1}', "above 0"),
    ],
)
def test_a_damaged_file_is_one_line_that_says_what_to_do(tmp_path, content, says):
    file = tmp_path / "calibration.json"
    file.write_text(content)
    with pytest.raises(DataError, match=f"calibration.json: .*{says}.*delete it"):
        show.calibrated(file, 1)
