PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help render test lint check

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

render: $(VENV)/.installed ## set up once and render every experiment into reports/
	$(BIN)/kvplan render experiments/*.yaml
	@echo "reports are in reports/"

test: $(VENV)/.installed ## set up once and run the suite
	$(BIN)/python -m pytest

lint: $(VENV)/.installed ## ruff over the package and the tests
	$(BIN)/ruff check kvplan tests

check: $(VENV)/.installed ## hold claims, golden numbers and reports
	$(BIN)/kvplan check experiments/*.yaml
