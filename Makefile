PYTHON ?= python3
BIN := .venv/bin
# The tests run in two processes; more threads than cores would only be in each other's way.
SINGLE_THREADED := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: test reproduce lint clean

test: .venv/.test lint ## run every test
	$(SINGLE_THREADED) $(BIN)/python -m pytest -n 2 --cov --cov-report=term-missing:skip-covered

reproduce: .venv/.paper ## run the paper's experiments on what needs no download, write the report
	$(BIN)/karnet reproduce --time-limit 10

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "karnet needs Python 3.11 or newer: install it and name it, as in 'make PYTHON=python3.11 test'."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) lacks ensurepip: install its venv package (Debian and Ubuntu: apt install python3-venv)."; exit 1; }
	$(PYTHON) -m venv --clear .venv
	touch $@

.venv/.paper: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[paper]'
	touch $@

.venv/.test: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/.paper

clean: ## remove the environment and everything that was built
	rm -rf .venv .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist reproduction
