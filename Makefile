# Two commands do everything: `make demo` and `make test`. The environment is made on first use.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
KERNELS := setup.py $(wildcard src/spinseg/*/kernels/*.py studies/evaluation/baselines/*/*.py)

unexport PYTHONDONTWRITEBYTECODE  # else each of the many processes of the tests compiles all sources again

.PHONY: demo app test test-all test-checked test-oldest docs links release-check lint pytest bench clean

demo: .venv/.core .venv/.kernels
	$(BIN)/spinseg demo

app: .venv/.core .venv/.kernels
	$(BIN)/spinseg app

test: .venv/.dev .venv/.kernels  # lint and types take one core while the tests warm up
	$(MAKE) --no-print-directory -j 2 lint pytest

pytest: .venv/.dev .venv/.kernels
	$(BIN)/python -m pytest

test-all: lint .venv/.kernels test-checked
	SPINSEG_EXHAUSTIVE=1 $(BIN)/python -m pytest -m ''

test-checked: .venv/.dev  # the sampler with kernels that check every index, in a copy of the package
	SPINSEG_BOUNDSCHECK=1 $(BIN)/python setup.py --quiet build --build-lib build/lib-checked --build-temp build/temp-checked
	PYTHONPATH=build/lib-checked $(BIN)/python -m pytest tests/sampler tests/clustering tests/image/test_outlines.py

test-oldest: .venv-oldest/.dev  # with the lowest versions of everything that pyproject.toml allows
	.venv-oldest/bin/python -m pytest -W ignore::DeprecationWarning  # which old libraries raise over new ones

docs: .venv/.docs .venv/.kernels  # the site, in docs/_build/html/index.html; a warning is an error, and so is code that does not run
	$(BIN)/python -m pytest -n 0 docs/*.md docs/*/*.md
	$(BIN)/sphinx-build -b html -W --keep-going docs docs/_build/html
	$(BIN)/python scripts/check_site.py docs/_build/html

links: .venv/.docs  # links to elsewhere: needs the internet
	$(BIN)/sphinx-build -b linkcheck -D plot_gallery=0 docs docs/_build/links

release-check: .venv/.release  # versions, workflows, sdist and wheel, and both tried in fresh environments
	$(BIN)/python scripts/release_check.py

lint: .venv/.dev  # style, words, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_words.py
	$(BIN)/mypy

bench: .venv/.dev .venv/.kernels
	$(BIN)/python -m studies speed engine scaling

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "spinseg needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.core: pyproject.toml | .venv/bin/python
	$(INSTALL) -e .
	touch $@ .venv/.kernels

.venv/.dev: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/.core .venv/.kernels

.venv/.kernels: $(KERNELS) | .venv/.core  # built again after an edit
	$(INSTALL) -e .
	touch $@

.venv/.docs: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[docs]'
	touch $@ .venv/.core .venv/.kernels

.venv/.release: pyproject.toml | .venv/bin/python
	$(INSTALL) build twine check-jsonschema zizmor
	touch $@

.venv-oldest/.dev: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) scripts/oldest_requirements.py > .venv-oldest/requirements.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-oldest/requirements.txt -e .
	touch $@

clean:
	rm -rf .venv .venv-oldest build docs/_build docs/auto_gallery docs/reference/generated dist spinseg-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find src studies -name '_compiled.*' -delete
