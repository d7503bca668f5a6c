"""Every command says what it is for, shows examples that parse, and pays for no other command's imports."""

import argparse
import os
import pkgutil
import shlex
import subprocess
import sys

import pytest

import isotrace.commands
from configs import ROOT
from isotrace import __version__
from isotrace.cli import main
from isotrace.commands.reference import reference_text
from isotrace.commands.registry import COMMANDS, codes, find, parser


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option_example_and_exit_code(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    told = capsys.readouterr().out
    found = find(name)
    assert all(example in told for example in found.examples)
    assert all(f"  {code}  {what}" in told for code, what in codes(found).items())
    alone = argparse.ArgumentParser(add_help=False)
    found.options(alone)
    assert all(action.help and action.help in told.replace("\n", " ") for action in alone._actions)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_parse(name):
    examples = find(name).examples
    assert examples
    for line in examples:
        program, command, *rest = shlex.split(line)
        assert (program, command) == ("isotrace", name)
        if not find(name).passes_on:
            assert parser([name]).parse_args([command, *rest]).command == name


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"isotrace {__version__}\n"


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert all(f"\n    {name} " in told for name in COMMANDS)


def test_every_module_of_the_package_is_a_command_or_serves_them():
    modules = {module.name for module in pkgutil.iter_modules(isotrace.commands.__path__)}
    assert modules - {"registry", "reference"} == set(COMMANDS)


def test_an_unknown_command_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["plann"])
    assert caught.value.code == 2
    assert "plan" in capsys.readouterr().err


def test_no_command_is_imported_for_another_and_none_imports_what_is_heavy():
    code = """
import sys
from isotrace.commands.registry import COMMANDS, parser
parser(["show"])
print(sorted(m for m in sys.modules if m.startswith("isotrace.commands.")))
parser(COMMANDS)
heavy = {"torch", "transformers", "zarr", "xarray", "matplotlib", "pandas", "numpy", "snakemake", "huggingface_hub"}
print(heavy & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['isotrace.commands.registry', 'isotrace.commands.show']\nset()\n"


def test_a_reader_that_goes_away_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "isotrace", "show", "frequency_points", "--about"]
    done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_reference_has_a_section_of_every_command():
    told = reference_text()
    assert all(f"\n## isotrace {name}\n" in told for name in COMMANDS)
    assert "All other options and targets are Snakemake's" in told
