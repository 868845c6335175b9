# Everything a developer types. `make help` lists it.
PYTHON ?= python3
REGIONS ?= 1
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
export PATH := $(CURDIR)/$(BIN):$(PATH)
.DEFAULT_GOAL := help

.PHONY: help setup demo test smoke smoke-long faults up down check secrets audit format synth pins clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: .build/setup.stamp ## The environment: Python packages, Node, CDK and dynalite from npm (all pinned)

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, name it: make PYTHON=…" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9

# uv compiles the packages: without .pyc files importing aws_cdk alone takes 5 s instead of 1 s.
.build/setup.stamp: $(UV) requirements/dev.txt requirements/emulator.txt clients/python/pyproject.toml package.json
	@mkdir -p .build
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements/dev.txt
	$(UV) pip install --quiet --no-deps --python $(BIN)/python -e clients/python
	$(UV) venv --quiet --clear --python $(BIN)/python .venv-emulator
	$(UV) pip install --quiet --compile-bytecode --python .venv-emulator/bin/python -r requirements/emulator.txt
	$(BIN)/npm install --silent --no-audit --no-fund --no-package-lock
	@touch $@

demo: setup ## Deploy into a local cloud, stream real conversations through it, compare, stop (REGIONS=2: across two)
	@$(BIN)/python -m local demo --regions $(REGIONS)

up: setup ## Keep a local cloud running (REGIONS=2: of two); prints its URL and how to get a token
	@$(BIN)/python -m local up --regions $(REGIONS)

down: ## Stop the local cloud that `make up` keeps
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m local down; fi

format: setup ## Format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

check: static ## The gate before a commit: format, lint, types, import contract, unit tests
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup tests/unit

static: setup ## The part of it that runs nothing: format, lint, types, import contract, secrets
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@cd lambdas && PYTHONPATH=.:.. ../$(BIN)/lint-imports --config ../pyproject.toml
	@$(BIN)/python -m tests.secrets

secrets: setup ## Look for secrets in all files; what is known to be none stands in .secrets.baseline
	@$(BIN)/python -m tests.secrets

audit: setup ## Ask for known vulnerabilities of all that is pinned; fails too where a package cannot be looked up
	@for pinned in dev emulator lambda; do \
	  $(BIN)/pip-audit --strict --disable-pip --no-deps --progress-spinner off -r requirements/$$pinned.txt || exit 1; done

synth: setup ## The `aws` templates for two regions and either network, through cfn-lint and cdk-nag
	@$(BIN)/python -m stacks.synth

test: static ## Everything that CI runs; what starts a local cloud stays on one of the two workers
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup

smoke: setup ## Look at a real deployment: make smoke URL=… TOKEN=… OTHER_TOKEN=… PRODUCE_TOKEN=…
	@$(BIN)/python -m smoke $(ARGS)

smoke-long: setup ## The same for what takes hours: lifetimes, expiry
	@$(BIN)/python -m smoke --long $(ARGS)

faults: setup ## Break the code in small ways, each in a copy, and see that the tests notice
	@$(BIN)/python -m tests.faults

pins: setup ## Resolve requirements/*.in again
	$(UV) pip compile -q --no-header --no-emit-index-url --universal --python-version 3.11 requirements/dev.in -o requirements/dev.txt
	$(UV) pip compile -q --no-header --no-emit-index-url --python-version 3.11 requirements/emulator.in -o requirements/emulator.txt
	$(UV) pip compile -q --no-header --no-emit-index-url --universal --python-version 3.11 \
	  --no-emit-package botocore --no-emit-package urllib3 --no-emit-package python-dateutil --no-emit-package six \
	  requirements/lambda.in -o requirements/lambda.txt

clean: down ## Remove what was built
	rm -rf .build .local cdk.out $(VENV) .venv-emulator node_modules
