# One command a task; CONTRIBUTING.md tells when to use which. `make` alone lists them.
VENV   ?= .venv
PYTHON ?= python3
TESTS  ?= tests
# Where the environment has no virtual environment of that name yet, `make install` makes it.
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help install demo test test-cluster test-tools leaves lint format coverage bench bench-cluster conformance docs clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

# The stamp file is newer than what decides the environment's content, so repeating is free.
$(BIN)/.aicr-dev: pyproject.toml constraints.txt hatch_build.py
	@echo "make: development environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --constraint constraints.txt hatchling PyYAML
	@$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	@touch $@

install: ## make the virtual environment (VENV=.venv) and compile the catalogue again
	@rm -f $(BIN)/.aicr-dev
	@$(MAKE) --no-print-directory $(BIN)/.aicr-dev

demo: ## recipe, bundle and helm's own verdict, from nothing but Python, pip and make
	@PYTHON="$(PYTHON)" bash tools/demo.sh

test: $(BIN)/.aicr-dev ## the test suite (TESTS=tests/bundle for a part)
	@echo "make: pytest $(TESTS)"
	@$(BIN)/python -m pytest -q -n auto $(TESTS)

test-cluster: $(BIN)/.aicr-dev ## tests on a real control plane; as root, with Go for the first build
	@echo "make: programs of the control plane"
	@$(BIN)/python -m tests.controlplane.build
	@echo "make: pytest -m cluster $(TESTS)"
	@# Servers are killed and paused here: a socket that the collector finds open afterwards is shown,
	@# and does not fail the test that happens to run then. TESTS="-W error" makes it fail.
	@$(BIN)/python -m pytest -q -m cluster -n 2 --dist loadfile -W default::pytest.PytestUnraisableExceptionWarning $(TESTS)

test-tools: $(BIN)/.aicr-dev ## bundles through kubeconform, flux, OpenTofu and helmfile; with Go for the first build
	@echo "make: programs from Go modules"
	@nice -n 10 $(BIN)/python -m tests.tools_build
	@nice -n 10 $(BIN)/python -m tests.chainsaw.chainsaw_build
	@echo "make: pytest -m tools tests/deployers"
	@$(BIN)/python -m pytest -q -m tools tests/deployers

leaves: $(BIN)/.aicr-dev ## resolve and bundle every overlay, and show how each ended
	@$(BIN)/python tools/leaf_table.py

lint: $(BIN)/.aicr-dev ## ruff, mypy --strict, layer contracts, shellcheck
	@echo "make: ruff check"
	@$(BIN)/ruff check .
	@echo "make: ruff format --check"
	@$(BIN)/ruff format --check --quiet .
	@echo "make: mypy --strict"
	@$(BIN)/mypy
	@echo "make: import-linter"
	@$(BIN)/lint-imports
	@echo "make: shellcheck"
	@command -v shellcheck >/dev/null || { \
	  echo "lint: shellcheck is missing; install it, for example: apt-get install shellcheck" >&2; \
	  exit 1; }
	@shellcheck .ci/run .ci/weekly tools/*.sh

# Empty BOM makes the page without a network: the charts then read "not pulled".
.PHONY: bom-docs bom-check bom-refresh
BOM ?= --pull
bom-docs: $(BIN)/.aicr-dev ## write docs/container-images.md from the pinned charts (BOM= without a network)
	@PATH="$(CURDIR)/.tools:$$PATH" $(BIN)/python -m tools.bom_docs $(BOM)
bom-check: $(BIN)/.aicr-dev ## compare every line of the page of images with the charts
	@PATH="$(CURDIR)/.tools:$$PATH" $(BIN)/python -m tools.bom_docs --check $(BOM)
bom-refresh: $(BIN)/.aicr-dev ## the weekly job (.ci/weekly): propose the page when images drifted
	@PATH="$(CURDIR)/.tools:$$PATH" $(BIN)/python -m tools.bom_refresh

format: $(BIN)/.aicr-dev ## let ruff sort imports and lay out the code
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format .

coverage: $(BIN)/.aicr-dev ## branch coverage of the test suite
	@$(BIN)/coverage run --branch --source=src/aicr -m pytest -q $(TESTS)
	@$(BIN)/coverage report --skip-covered --sort=cover

bench: ## start-up and resolver benchmarks in a clean environment (AICR_ORIGINAL=path to compare)
	@PYTHON="$(PYTHON)" bash tools/bench.sh

bench-cluster: $(BIN)/.aicr-dev ## what large collections of a real API server cost; minutes, needs what test-cluster does
	@$(BIN)/python -m benchmarks.bench_kube_real

.PHONY: proto
proto: $(BIN)/.aicr-dev ## generate the messages of health events from proto/
	@$(BIN)/python tools/gen_proto.py

.PHONY: test-torch
TORCH_VENV ?= .venv-torch
test-torch: ## gangs of gloo processes with Debian's python3-torch (apt-get install python3-torch python3-venv)
	@/usr/bin/python3 -c 'import torch' || { \
	  echo "test-torch: torch is missing; apt-get install python3-torch python3-venv" >&2; exit 1; }
	@test -x $(TORCH_VENV)/bin/python || /usr/bin/python3 -m venv --system-site-packages $(TORCH_VENV)
	@$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  PyYAML msgspec grpcio protobuf aiohttp cryptography kubernetes pytest hatchling
	@$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@nice $(TORCH_VENV)/bin/python -m pytest -q -p no:cacheprovider tests/torch
	@# The same program in pods, on the file that the real controller writes; as root.
	@nice $(TORCH_VENV)/bin/python -m pytest -q -p no:cacheprovider -m cluster \
	  tests/cluster/test_preflight_allreduce.py

.PHONY: demo-validate
demo-validate: $(BIN)/.aicr-dev ## snapshot, recipe and validation on a real control plane; as root, with Go for the first build
	@$(BIN)/python -m tools.validate_demo

.PHONY: kit
kit:
	@test -n "$(AICR_KIT)" || { \
	  echo "conformance: set AICR_KIT to the folder of the conformance kit" >&2; exit 1; }
	@test -d "$(AICR_KIT)" || { \
	  echo "conformance: AICR_KIT=$(AICR_KIT) is not a folder" >&2; exit 1; }

conformance: kit $(BIN)/.aicr-dev ## compare with the golden outputs of v0.11.1 (AICR_KIT=path)
	@echo "make: pytest tests/conformance with the kit in $(AICR_KIT)"
	@AICR_KIT="$(abspath $(AICR_KIT))" $(BIN)/python -m pytest -q -s tests/conformance

docs: $(BIN)/.aicr-dev ## write generated pages and completion scripts again
	@$(BIN)/python tools/gen_docs.py
	@echo "make: schemas and the page of lint rules"
	@$(BIN)/python -m tools.gen_schemas
	@$(BIN)/python -m tools.gen_lint_page
	@echo "make: the page of bundle validations"
	@$(BIN)/python -m tools.gen_validation_page
	@echo "make: the page of checks"
	@$(BIN)/python -m tools.gen_checks_page
	@echo "make: the page of waiting times"
	@$(BIN)/python -m tools.gen_timeouts_page
	@echo "make: completion scripts"
	@$(BIN)/python tools/make_completions.py

clean: ## remove what these targets made, except the virtual environment and downloaded tools
	@rm -rf demo-out build dist htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache \
	  .hypothesis .import_linter_cache

.PHONY: catalogue-report
catalogue-report: $(BIN)/.aicr-dev ## count the catalogue, its sources and what is unknown; write docs/catalogue/report.md
	@$(BIN)/python -m tools.catalogue_report
