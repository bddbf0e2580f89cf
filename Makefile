# `make demo` and `make test` are all that a newcomer needs; both make the virtual environment.
# `make test` builds Kubernetes' programs from Go modules once, into the user's cache folder; `make test-fast` needs no Go.
# Both fetch Debian's Prometheus into that folder unless one is on the PATH. POLICYSCHED_KUBE=1.36 in the environment has
# all targets build and run the programs of that Kubernetes minor, and compare decisions with it alone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DIST ?= dist
# Three processes for two cores, because a third of the tests' time is waiting for other processes.
WORKERS ?= -n 3 --dist worksteal
QUICK := tests/language tests/model tests/rules tests/framework tests/state
LOCK := pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
    --custom-compile-command "make lock"

# The tests start hundreds of processes, which import the package from byte code.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast quick e2e faults queues ladder check bench bench-cluster docs pages chart release-files grammar lock clean
demo: $(VENV)/.installed
	$(BIN)/policysched demo

test: $(VENV)/.dev check
	$(BIN)/python -m tests.metric_sources.program
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m pytest $(WORKERS)

# The fast half of the tests, lint and types: two minutes on two cores, chosen to find most mistakes.
quick: $(VENV)/.dev check
	$(BIN)/python -m pytest -n 2 -m "not kubectl and not oracle and not controlplane" $(QUICK)

test-fast: $(VENV)/.dev
	$(BIN)/python -m tests.metric_sources.program
	POLICYSCHED_LIFE=5000 $(BIN)/python -m pytest $(WORKERS) -m "not kubectl and not oracle and not controlplane"

# Runs Kubernetes' own scheduling specs on a control plane whose scheduler is policysched, in nine minutes.
# E2E takes arguments, such as E2E="--scheduler kube-scheduler", E2E="--suite devices", E2E="--suite groups" or
# E2E="--focus SchedulerPreemption".
e2e: $(VENV)/.dev
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m tests.conformance_suite $(E2E)

# Injects faults of servers, networks and neighbours while 500 pods are scheduled, in ten minutes for each scheduler.
# FAULTS takes arguments, such as FAULTS="--scheduler both -o json", FAULTS="--devices", FAULTS="--groups" or
# FAULTS="--fault killed".
faults: $(VENV)/.dev
	$(BIN)/python -m tests.controlplane.build
	$(BIN)/python -m tests.faults $(FAULTS)

# Builds Kueue and JobSet from their Go modules and runs them beside policysched, in two minutes after the build.
queues: $(VENV)/.dev
	$(BIN)/python -m tests.controlplane.build
	POLICYSCHED_QUEUES=1 $(BIN)/python -m pytest tests/queues

# Compares kube-scheduler's decisions with those of all newer Kubernetes versions, in an hour for each; needs the Go of
# each version. LADDER takes arguments, such as LADDER="v1.39.0-alpha.1 --from v1.38.0 --cases 2000".
LADDER ?= newest
ladder: $(VENV)/.dev
	$(BIN)/python -m tests.oracle.ladder $(LADDER)

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

# Builds all files of a release into dist/release and publishes nothing. With TAG=vX.Y.Z the tag must be the version, and the
# changelog must have its date. The packages that build are pinned by hashes.
RELEASE := build/release-venv
release-files: $(RELEASE)/.installed
	rm -rf $(DIST)/release
	$(RELEASE)/bin/python -m tools.release $(DIST)/release $(if $(TAG),--tag $(TAG))

$(RELEASE)/.installed: requirements-release.lock
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python -m pip install -q --require-hashes --only-binary=:all: -r requirements-release.lock
	touch $@

# Writes the tables of the language's grammar, which the package ships; run it after a change of the grammar.
grammar: $(VENV)/.dev
	$(BIN)/python -c "from policysched.language.syntax.grammar import make_tables; print(make_tables(), end='')" > grammar.json
	mv grammar.json policysched/language/syntax/grammar.json

# Pins the versions of the image and of the release's build, with the hashes of their files.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv $(LOCK) pyproject.toml -o requirements.lock
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" \
	    | $(BIN)/uv $(LOCK) - -o requirements-build.lock
	$(BIN)/uv $(LOCK) --constraint requirements-build.lock --group release -o requirements-release.lock

bench: $(VENV)/.dev
	$(BIN)/python -m bench.calls
	$(BIN)/python -m bench.engine
	$(BIN)/python -m bench.rules
	$(BIN)/python -m bench.affinity
	$(BIN)/python -m bench.spreading
	$(BIN)/python -m bench.volumes

# Measures kube-scheduler, a null scheduler and policysched on a real API server, one after the other, in half an hour.
# BENCH takes arguments, such as BENCH="--quick" (five minutes) or BENCH="--workload basic --nodes 1000".
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
