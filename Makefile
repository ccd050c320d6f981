# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
USER := $(VENV)/.user
DEV := $(VENV)/.dev

.PHONY: demo test lint bench clean

$(USER): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[mujoco,box2d]'
	touch $@

$(DEV): $(USER)
	$(PIP) -e '.[dev]'
	touch $@

demo: $(USER) ## train CartPole-v1 to solved, evaluate it over 100 episodes, say what to try next
	@$(BIN)/python examples/demo.py

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(DEV) lint
	$(BIN)/python -m pytest

bench: $(DEV)
	$(BIN)/esker bench

clean:
	rm -rf $(VENV) build *.egg-info
