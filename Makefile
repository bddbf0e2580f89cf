# `make demo` and `make test` are all a newcomer needs; both make the virtual environment they use.
# `make test` builds Kubernetes' own programs from Go modules once, into the user's cache folder; `make test-fast` is
# what needs no Go. Both fetch Debian's Prometheus into that folder where none is on the PATH.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DIST ?= dist
LOCK := pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
    --custom-compile-command "make lock"

.PHONY: demo test test-fast quick e2e faults check bench bench-cluster docs pages chart grammar lock clean
demo: $(VENV)/.installed
	$(BIN)/policysched demo

test: $(VENV)/.dev check
	$(BIN)/python -m tests.metric_sources.program
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m pytest -n 2

test-fast: $(VENV)/.dev
	$(BIN)/python -m tests.metric_sources.program
	POLICYSCHED_LIFE=5000 $(BIN)/python -m pytest -n 2 -m "not kubectl and not oracle and not controlplane"

# Kubernetes' own specs of scheduling, on a control plane where policysched is the scheduler; E2E takes arguments, such as
# E2E="--scheduler kube-scheduler", E2E="--suite devices" or E2E="--focus SchedulerPreemption". It takes nine minutes, and
# as long to build once.
e2e: $(VENV)/.dev
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m tests.conformance_suite $(E2E)

# Faults of servers, networks and neighbours in the middle of 500 pods; FAULTS takes arguments, such as
# FAULTS="--scheduler both -o json", FAULTS="--devices" or FAULTS="--fault killed". For both schedulers it takes about 20
# minutes.
faults: $(VENV)/.dev
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m tests.faults $(FAULTS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Checks all documents, runs the commands that they show, and builds the site into build/site.
docs: $(VENV)/.dev
	$(BIN)/python -m tools.documents
	$(BIN)/python -m tests.pages --check

# Writes generated pages, the output of the commands that pages show, and the drawing of the architecture.
pages: $(VENV)/.dev
	$(BIN)/python -m tools.reference
	$(BIN)/python tools/draw_architecture.py
	$(BIN)/python -m tests.pages

# Copies the Helm chart into dist/policysched with files in place of links: `helm package dist/policysched`.
chart:
	mkdir -p $(DIST)
	rm -rf $(DIST)/policysched
	cp -RL deploy/chart $(DIST)/policysched

# Works out the tables of the language's grammar, which are shipped, after a change of it.
grammar: $(VENV)/.dev
	$(BIN)/python -c "from policysched.language.syntax.grammar import make_tables; print(make_tables(), end='')" > grammar.json
	mv grammar.json policysched/language/syntax/grammar.json

# Writes down which versions the image has, with the hashes of all their files.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv $(LOCK) pyproject.toml -o requirements.lock
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" \
	    | $(BIN)/uv $(LOCK) - -o requirements-build.lock

bench: $(VENV)/.dev
	$(BIN)/python -m bench.engine
	$(BIN)/python -m bench.rules
	$(BIN)/python -m bench.affinity
	$(BIN)/python -m bench.spreading
	$(BIN)/python -m bench.volumes

# kube-scheduler, a null scheduler and policysched on a real API server, one after the other; BENCH takes arguments, such
# as BENCH="--quick" or BENCH="--workload basic --nodes 1000". It takes half an hour; --quick takes below five minutes.
bench-cluster: $(VENV)/.dev
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m bench.cluster $(BENCH)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -U pip
	$(BIN)/python -m pip install -q -e .
	touch $@

$(VENV)/.dev: $(VENV)/.installed pyproject.toml
	$(BIN)/python -m pip install -q -e . --group dev
	touch $@

clean:
	rm -rf $(VENV)
