PYTHON ?= $(shell python3.11 -c '' 2>/dev/null && echo python3.11 || echo python3)
DATA ?= ../shared
CASES ?= 40
BENCHMARKS := limits counts speed partitions superpixels deit newcomer
STAMP := .venv/.installed
ADAPTERS := .venv/adapters
TOOLS := .venv/tools
DEMO := .venv/.demo

.PHONY: help demo test lint docs fuzz boundscheck audit dist bench clean
.DEFAULT_GOAL := help

help:   ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

demo: $(DEMO)   ## tokens, classes, explanation and mask of a sample photo in one picture
	.venv/bin/spit demo

# torch's threads do not spin while they wait: test workers share the cores. Many tests wait for a process, so three
# workers fill two cores
test fuzz boundscheck: export OMP_WAIT_POLICY = PASSIVE

test: lint $(ADAPTERS)   ## lint, then every test
	.venv/bin/python -m pytest -n 3 --durations=20
	PYTHONPATH=$(ADAPTERS) .venv/bin/python -m pytest -n 2 tests/attribution/test_adapters.py tests/interop/test_timm_registry.py tests/seams

fuzz: $(STAMP)   ## 140,000 hostile inputs; CASES=40 times those of make test
	SPIT_FUZZ=$(CASES) .venv/bin/python -m pytest tests/fuzz -n 2

boundscheck: $(STAMP)   ## the compiled loops with every index checked; a cache of their own
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.venv/boundscheck .venv/bin/python -m pytest -n 2 --ignore=tests/kernels/triton \
		tests/kernels tests/tokenizers tests/features tests/labels tests/test_partition.py tests/test_arrays.py tests/fuzz/test_arguments.py

lint: $(STAMP)   ## ruff, mypy, spelling, links
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/codespell
	.venv/bin/python tools/check_links.py

docs: $(STAMP)   ## the site, into site/ (to search it: python -m http.server -d site)
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

audit: $(TOOLS)   ## known vulnerabilities of the pinned dependencies; asks PyPI
	$(TOOLS)/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

dist: $(STAMP) $(TOOLS)   ## wheels and sdists of spit-vit and spit-vit-models, and an SBOM, into dist/
	rm -rf dist
	$(TOOLS)/bin/python -m build --outdir dist
	$(TOOLS)/bin/python -m build --outdir dist models
	$(TOOLS)/bin/cyclonedx-py environment --no-validate --pyproject pyproject.toml --output-file dist/sbom.cdx.json .venv

bench: $(STAMP)   ## every figure in the README, half an hour in all; data from DATA=../shared
	@set -e; for name in $(BENCHMARKS); do echo "== $$name"; .venv/bin/python benchmarks/$$name.py --shared '$(DATA)'; done

clean:   ## caches and outputs; keeps .venv (rm -rf .venv to make it anew)
	rm -rf build dist site src/*.egg-info spit-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEMO): pyproject.toml constraints.txt
	@echo 'Installing spit and torch into .venv; this takes some minutes.'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[demo,evaluate,serve,plots]'
	touch $@

$(STAMP): $(DEMO)
	@echo 'Installing what the tests need into .venv; this takes some minutes.'
	.venv/bin/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[dev,demo]'
	touch $@

$(ADAPTERS): $(STAMP) tests/adapters.txt
	.venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --upgrade --target $@ -r tests/adapters.txt
	touch $@

$(TOOLS): tools/requirements.txt
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --disable-pip-version-check --quiet -r tools/requirements.txt
	touch $@
