# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test lint bench clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(INSTALLED) ## train CartPole-v1 to solved, evaluate it over 100 episodes, say what to try next
	@$(BIN)/python examples/demo.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(INSTALLED) lint
	$(BIN)/python -m pytest

bench: $(INSTALLED)
	$(BIN)/esker bench

clean:
	rm -rf $(VENV) build *.egg-info
