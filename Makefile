# make demo | make test | make test-all | make docs | make format | make clean
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
WORKERS ?= auto

# One thread per test worker: two that share a core slow each other down forty times.
export OMP_NUM_THREADS ?= 1
# Compiled tests and modules are kept: else every run and every process that a test starts compiles
# them anew.
unexport PYTHONDONTWRITEBYTECODE
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: demo test test-all lint format bench docs clean

demo: $(VENV)/.core
	$(BIN)/ansatz fit breast-cancer --out demo-model --overwrite
	@echo
	$(BIN)/ansatz predict demo-model breast-cancer | head -n 5
	@echo
	$(BIN)/ansatz report demo-model --overwrite --quiet

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -rs

test-all: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -rs -m "slow or not slow"
	$(BIN)/python tests/check_wheel.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.bench
	-$(BIN)/ansatz bench all --record
	$(BIN)/python benchmarks/trainer_overhead.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/outcomes.py
	$(BIN)/python benchmarks/likelihoods.py
	$(BIN)/python benchmarks/choice.py
	$(BIN)/python benchmarks/readme.py

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html opens without a server"

# torch first and alone: a later range that it satisfies then leaves it as it is.
$(VENV)/.torch: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install torch
	@touch $@

$(VENV)/.core: $(VENV)/.torch pyproject.toml
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) install -e '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) install -e '.[dev,bench]'
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) install -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site demo-model demo-model.html .pytest_cache .mypy_cache .ruff_cache
