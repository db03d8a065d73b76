VENV = .venv
PYTHON = $(VENV)/bin/python
INSTALLED = $(VENV)/installed
BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)

.PHONY: demo test lint

demo: $(INSTALLED)
	$(VENV)/bin/kseq train translate_lstm

test: $(INSTALLED)
	$(PYTHON) -m pytest --numprocesses 2 --dist worksteal

lint: $(INSTALLED)
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check

$(INSTALLED): pyproject.toml
	$(BASE_PYTHON) -m venv $(VENV)
	$(PYTHON) -m pip install --editable '.[test]'
	touch $@
