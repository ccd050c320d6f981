# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
FOR_USERS := $(VENV)/.user
FOR_DEVELOPERS := $(VENV)/.dev

.PHONY: demo test faults matrix lint bench bench-peers clean docs release

$(FOR_USERS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[mujoco,box2d]'
	touch $@

$(FOR_DEVELOPERS): $(FOR_USERS)
	$(PIP) -e '.[dev]'
	touch $@

demo: $(FOR_USERS) ## train CartPole-v1 to solved, evaluate it over 100 episodes, say what to try next
	@$(BIN)/python examples/demo.py

lint: $(FOR_DEVELOPERS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(FOR_DEVELOPERS) lint ## two files of tests at a time; those of the cluster, which starts many processes itself, alone
	$(BIN)/python -m pytest -n 2 --dist loadfile --ignore=tests/cluster
	$(BIN)/python -m pytest tests/cluster

faults: $(FOR_DEVELOPERS) ## every fault of docs/cluster.md, a simulated cluster, kills, damaged folders, full disks, much of everything, an hour's soak, fuzzing; hours
	$(BIN)/python -m pytest tests/cluster -m 'faults or not faults'
	$(BIN)/python tests/faults/simulate.py --schedules 10000
	$(BIN)/python tests/faults/kills.py --kills 200
	$(BIN)/python tests/faults/cluster_kills.py --kills 40
	$(BIN)/python tests/faults/repeat.py --times 200
	$(BIN)/python tests/faults/damages.py --folders 200
	$(BIN)/python tests/faults/full_disk.py --folders 30
	$(BIN)/python tests/faults/load.py
	$(BIN)/python tests/faults/soak.py --minutes 60
	ESKER_FUZZ=1500 $(BIN)/python -m pytest tests/fuzz

matrix: ## a smoke test with the oldest and the newest supported versions, where they can be installed
	.ci/matrix

bench: $(FOR_DEVELOPERS)
	$(BIN)/esker bench

PEERS := .venv-peers
$(PEERS)/.ready: benchmarks/peers/requirements.txt constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/peers/requirements.txt
	touch $@

bench-peers: $(FOR_DEVELOPERS) $(PEERS)/.ready ## beside EvoTorch, evosax and EvoX, in an environment of their own; half an hour
	$(BIN)/python benchmarks/peers --peers $(PEERS)/bin/python

docs: $(FOR_DEVELOPERS) ## the site, in build/site; a warning is an error
	$(BIN)/python docs/make_evidence.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

release: $(FOR_DEVELOPERS) ## wheel and sdist in dist/, tried in an empty environment
	.ci/release $(BIN)/python

clean:
	rm -rf $(VENV) $(PEERS) build *.egg-info
