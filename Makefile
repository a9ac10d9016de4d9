# Every target works in a fresh clone: it makes .venv first, and only when that is missing or stale.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TINY_OUT ?= out/train-tiny

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage report-check soak check format train-tiny bench

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install the package with its development tools

# The stamp comes last, so an interrupted installation is done again.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## decode 240 prompts on two workers, verify, and compare with draft-free decoding
	$(BIN)/spotbatch run examples/quickstart/job.yaml
	$(BIN)/python -m examples.quickstart.compare
	$(BIN)/spotbatch verify out/quickstart --replay 8

# Tests that start processes have the cores for themselves; the others share them out by file.
APART := ray or crash or s3 or cli
test: setup ## run all tests
	@failed=0; \
	$(BIN)/python -m pytest -m 'not ($(APART))' --numprocesses 2 --dist loadfile || failed=1; \
	$(BIN)/python -m pytest -m '$(APART)' || failed=1; \
	exit $$failed

# Without what a test kills: the killed process cannot say what it ran.
coverage: setup ## lines and branches of manifests and schedulers that their tests run; all must be
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -q -m 'not crash' tests/manifests tests/schedulers
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report

report-check: setup ## open the report in a headless Chromium; skipped where there is none
	$(BIN)/python -m pytest -q tests/jobs/report

soak: setup ## kill workers at random over 400 tiny shards (two cores, many minutes)
	SOAK_SHARDS=400 $(BIN)/python -m pytest -q -s tests/ray/test_soak.py

check: setup ## format, lint, types and the import rule
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q --durations=0 tests/test_imports.py

format: setup ## rewrite the sources in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

train-tiny: setup ## train the bundled target and its drafters from scratch (two cores, hours)
	$(BIN)/python -m examples.tiny.train_target --out $(TINY_OUT)
	examples/tiny/train_drafters.sh $(TINY_OUT)/target $(TINY_OUT)

bench: setup ## measure every drafter on this machine (two cores, 40 minutes)
	$(BIN)/python -m benchmarks.decoding --json out/benchmarks.json --markdown out/benchmarks.md
