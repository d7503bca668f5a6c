"""`isotrace new` on a hub on loopback: how revisions are named, and what is said of a repo that is not there."""

import pytest
import yaml

from isotrace.cli import main
from isotrace.draft.hub import labels_of, read_hub
from isotrace.errors import ConfigError, DataError
from isotrace.hub.client import Client
from isotrace.study import read, validated


def test_a_repo_becomes_a_config_that_is_resolved_next(hub, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "org/tiny", "--name", "decoder", "--objective", "clm", "--out", "new.yaml"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "hub: org/tiny: 4 checkpoints, step 0 to 100"
    assert told[2] == "  isotrace resolve decoder --configfile new.yaml"
    study = validated(yaml.safe_load((tmp_path / "new.yaml").read_text()))
    source = study.models["decoder"].source
    assert (source.repo, source.revisions.labels, source.with_init) == ("org/tiny", "pythia", False)
    assert main(["resolve", "decoder", "--configfile", "new.yaml"]) == 0
    assert read("new.yaml").series["decoder"].ids == ["step0", "step8", "step90", "step100"]


def test_a_repo_that_is_not_there_is_one_line(hub):
    with pytest.raises(DataError, match=r"no folder org/none here, and asked of the hub: hub: org/none: not there"):
        read_hub("org/none", None, Client(pause=0.01))


@pytest.mark.parametrize(
    ("names", "family", "steps"),
    [
        (["main", "step0", "step512", "step1000"], "pythia", [0, 512, 1000]),
        (["main", "step-125000", "step-250000"], "smollm", [125000, 250000]),
        (["step10-tokens2B", "step20-tokens4B", "main"], "olmo", [10, 20]),
        (["global_step10", "global_step200"], "generic", [10, 200]),
        (["stage1-step10-tokens1B", "stage2-ingredient1-step10-tokens1B", "stage1-step20-tokens2B"], None, [10, 20]),
    ],
)
def test_the_naming_that_fits_is_found(names, family, steps):
    found, labels = labels_of(names)
    assert [label.step for label in labels] == steps
    assert found == family or (family is None and found.startswith("stage1-"))


def test_names_without_a_step_are_refused_with_what_to_give():
    with pytest.raises(ConfigError, match="give --labels"):
        labels_of(["main", "refs"])
