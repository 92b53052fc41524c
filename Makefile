# `make render` and `make test` set up .venv once; PYTHON picks the interpreter it is made from.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
GENERATED := README.md ARCHITECTURE.md docs/experiment.md

.DEFAULT_GOAL := all
.PHONY: all help render test check format lint types docs docs-check bench

all: format lint types docs-check test ## format, lint, types, docs and the suite: before each commit

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "kvplan needs Python 3.11 or newer; name one: make PYTHON=python3.13 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "this Python cannot make a venv; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "setting up $(VENV), once ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

render: $(READY) ## render every experiment into reports/
	@$(BIN)/kvplan render experiments/*.yaml
	@echo "the reports are in reports/: .md to read and commit, .html to open in a browser"

test: $(READY) ## run the whole suite
	@$(BIN)/python -m pytest

check: $(READY) ## hold claims, golden numbers and committed reports
	@$(BIN)/kvplan check experiments/*.yaml

format: $(READY) ## lay out the code
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .

lint: $(READY) ## ruff: rules and layout
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## mypy --strict
	@$(BIN)/mypy

docs: $(READY) ## write the generated parts of the documentation, and the schema for editors
	@$(BIN)/kvplan schema > schema/experiment.schema.json.new
	@mv schema/experiment.schema.json.new schema/experiment.schema.json
	@$(BIN)/python -m cogapp -r -I docs $(GENERATED)

docs-check: $(READY) ## whether what `make docs` writes is current, and every link leads somewhere
	@$(BIN)/python -m pytest -q tests/test_docs.py

bench: $(READY) ## time and memory, as one table
	@$(BIN)/python -m bench
