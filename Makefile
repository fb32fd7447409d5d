# Two commands do everything: `make demo` and `make test`. The environment is made on first use.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

unexport PYTHONDONTWRITEBYTECODE  # else each of the many processes of the tests compiles all sources again

.PHONY: demo app test test-all test-oldest docs links release-check lint pytest bench clean

demo: .venv/.core
	$(BIN)/spinseg demo

app: .venv/.core
	$(BIN)/spinseg app

test: .venv/.dev  # lint and types take one core while the tests warm up
	$(MAKE) --no-print-directory -j 2 lint pytest

pytest: .venv/.dev
	$(BIN)/python -m pytest

test-all: lint
	SPINSEG_EXHAUSTIVE=1 $(BIN)/python -m pytest -m ''

test-oldest: .venv-oldest/.dev  # with the lowest versions of everything that pyproject.toml allows
	.venv-oldest/bin/python -m pytest -W ignore::DeprecationWarning  # which old libraries raise over new ones

docs: .venv/.docs  # the site, in docs/_build/html/index.html; a warning is an error, and so is code that does not run
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

bench: .venv/.dev
	$(BIN)/python -m studies speed engine scaling

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "spinseg needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.core: pyproject.toml | .venv/bin/python
	$(INSTALL) -e .
	touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	$(BIN)/python tests/compile_all.py
	touch $@

.venv/.docs: pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[docs]'
	touch $@

.venv/.release: pyproject.toml | .venv/bin/python
	$(INSTALL) build twine check-jsonschema zizmor
	touch $@

.venv-oldest/.dev: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) scripts/oldest_requirements.py > .venv-oldest/requirements.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-oldest/requirements.txt -e .
	touch $@

clean:
	rm -rf .venv .venv-oldest docs/_build docs/auto_gallery docs/reference/generated dist spinseg-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
