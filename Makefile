# Everything sets up what it needs: `make demo` on a fresh clone works, and is quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
AIRFLOW_VENV := .venv-airflow
EXTRAS := --extra mlflow --extra embedded --extra server --extra mcp --extra postgresql

# Tests start hundreds of Python processes, each of which would compile every module that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup airflow demo test test-fast test-all-pythons check format lock licences clean
help: ## Show this help.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 25

# $(call install,VENV,LOCK): what the lock names, by hash, then the project alone. uv is fast; where only pip knows the way to the
# package index, pip does it.
define install
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tipbench needs Python 3.11 or newer: make setup PYTHON=python3.11")'
test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
awk '/^[^ ]/ {wanted = /^uv==/} wanted' $(2) > $(1)/uv.lock
$(1)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(1)/uv.lock
$(1)/bin/uv pip install --quiet --system-certs --python $(1)/bin/python --compile-bytecode --require-hashes --requirement $(2) \
  || $(1)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(2)
$(1)/bin/uv pip install --quiet --offline --python $(1)/bin/python --no-deps --no-build-isolation --editable .
@touch $(1)/.ready
endef

$(VENV)/.ready: pyproject.toml requirements-dev.lock Makefile
	$(call install,$(VENV),requirements-dev.lock)

$(AIRFLOW_VENV)/.ready: pyproject.toml requirements-airflow.lock Makefile
	$(call install,$(AIRFLOW_VENV),requirements-airflow.lock)

setup: $(VENV)/.ready ## Install tipbench with all extras but Airflow, and the embedded model's weights.
	@$(BIN)/tipbench pull smollm2:135m

airflow: $(AIRFLOW_VENV)/.ready ## Install Airflow with tipbench, in an environment of its own.
	@echo "Airflow is in $(AIRFLOW_VENV): put $(CURDIR)/$(AIRFLOW_VENV)/bin first in PATH where its services start."

demo: setup ## Collect, judge and compare once, with a real model.
	@$(BIN)/tipbench demo

test: setup $(AIRFLOW_VENV)/.ready ## Run all tests, on real parts: ten minutes on two cores, after set-up.
	@$(BIN)/python -m tests.integration.real_parts
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder # one more than cores: tests wait a lot

test-fast: $(VENV)/.ready ## Run the tests that need no server, weights, browser or kills: two minutes.
	$(BIN)/python -m pytest -n 3 --dist worksteal --ignore tests/integration

TESTS ?= -n 3 --dist loadfile --no-loadscope-reorder
test-all-pythons: setup $(AIRFLOW_VENV)/.ready ## Run all tests, or TESTS, against the wheel on each Python on PATH: 3.11 to 3.13.
	@$(BIN)/python -m tests.integration.real_parts
	$(BIN)/python -m tests.all_pythons $(TESTS)

check: $(VENV)/.ready ## Format, lint, types and layers.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready ## Format the code and mend what the linter can.
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# One lock for each environment: production, development, Airflow. A pin stays until UPGRADE=--upgrade asks for newer ones.
COMPILE = $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-annotate --custom-compile-command 'make lock' --group pyproject.toml:install $(UPGRADE) pyproject.toml

lock: ## Write the locked requirements again, after a change in pyproject.toml (UPGRADE=--upgrade: with newer versions).
	$(COMPILE) $(EXTRAS) --output-file requirements.lock
	$(COMPILE) $(EXTRAS) --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(COMPILE) --extra embedded --extra airflow --output-file requirements-airflow.lock

licences: $(VENV)/.ready ## List the licences of everything that production installs.
	@$(BIN)/python deploy/licences.py requirements.lock

clean: ## Remove the virtual environments and caches.
	rm -rf $(VENV) $(AIRFLOW_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
