VENV = .venv
PYTHON = $(VENV)/bin/python
INSTALLED = $(VENV)/installed
BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)

.PHONY: demo test lint docs

demo: $(INSTALLED)
	$(VENV)/bin/kseq train translate_lstm

test: $(INSTALLED)
	$(PYTHON) -m pytest --numprocesses 2 --dist worksteal

lint: $(INSTALLED)
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

$(INSTALLED): pyproject.toml
	$(BASE_PYTHON) -m venv $(VENV)
	$(PYTHON) -m pip install --editable '.[test]'
	touch $@

$(VENV)/installed-docs: $(INSTALLED)
	$(PYTHON) -m pip install --editable '.[docs]'
	touch $@
