# Everything sets up what it needs: `make demo` on a fresh clone works, and is quick the second time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := $(shell sed -n 's/^uv==//p' constraints.txt)
EXTRAS := mlflow,embedded,server,dev
INSTALL_FLAGS := --constraint constraints.txt --editable '.[$(EXTRAS)]'

.PHONY: help setup demo test check format clean
help: ## Show this help.
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

$(VENV)/.ready: pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tipbench needs Python 3.11 or newer: make setup PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@# uv is fast; where only pip knows the way to the package index, pip does it.
	$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --compile-bytecode $(INSTALL_FLAGS) \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check $(INSTALL_FLAGS)
	@touch $@

setup: $(VENV)/.ready ## Install tipbench with all extras but Airflow, and the embedded model's weights.
	@$(BIN)/tipbench pull smollm2:135m

demo: setup ## Collect, judge and compare once, with a real model.
	@$(BIN)/tipbench demo

test: setup ## Run all tests, on real parts.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.ready ## Format, lint, types and layers.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready ## Format the code and mend what the linter can.
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## Remove the virtual environment and caches.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
