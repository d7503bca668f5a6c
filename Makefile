PYTHON ?= python3
BIN := .venv/bin
CONFIG ?= config/demo.yaml

.PHONY: demo test test-slow test-slurm lint format docs site bench clean

demo: .venv/ready  ## set up, run the demo study to the end, print the headline numbers
	@$(BIN)/isotrace run --configfile $(CONFIG)
	@$(BIN)/isotrace headline --configfile $(CONFIG)

test: .venv/ready lint  ## set up, lint, type-check, test
	$(BIN)/pytest -n 2 -m "not slow and not slurm" tests

test-slow: .venv/ready  ## what takes minutes
	$(BIN)/pytest -n 2 -m "slow and not slurm" --durations=25 tests

test-slurm: .venv/ready  ## a study through the profile for Slurm, on a cluster of one node; needs slurm-wlm and munge
	$(BIN)/pytest -m slurm tests/slurm

lint: .venv/ready  ## ruff, snakefmt, snakemake --lint, mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/python tests/workflow/lint.py
	$(BIN)/mypy

format: .venv/ready  ## rewrite sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

docs: .venv/ready  ## regenerate the schema, the default config, the tables of keys, of columns and of what reruns
	$(BIN)/python -m isotrace.configdocs
	$(BIN)/python -W ignore -m isotrace.reruns

site: .venv/ready  ## build the documentation into build/site; warnings are errors
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r docs/requirements.txt
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: .venv/ready  ## measure what isotrace costs beside its baselines, one JSON line each (some 45 minutes)
	@for name in $$($(BIN)/isotrace bench | cut -d: -f1); do $(BIN)/isotrace bench $$name || exit 1; done

clean:  ## remove results and logs, keep the environment
	rm -rf .snakemake logs benchmarks
	find results -mindepth 1 ! -name README.md -delete

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isotrace needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
