# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
RUN := .venv/bin/python
READY := .venv/ready
DEMO := .venv/demo
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo docs paper test test-first test-second test-third test-kernels test-slow coverage lint format constraints clean

demo: $(DEMO)
	@$(RUN) -m pseudomallows demo --out demo

# The figures and tables of the paper, into paper/: `make paper`, or `make paper FULL=1` in the full setting (the
# paper's where it prints one, ours elsewhere), half an hour of one core. With `MSWEB=FOLDER` (train.csv and test.csv, columns user and item)
# the case study takes these clicks too. `FORMAT=svg` or `FORMAT=pdf` draws the figures as such files, not as PNG.
PAPER := medians best_orders conjecture iterative_search sigma_heat best_sigma user_orders \
	accuracy_rankings accuracy_clicks case_study scaling
paper: $(READY)
	@for script in $(PAPER); do \
		msweb=; if [ $$script = case_study ]; then msweb='$(if $(MSWEB),--msweb=$(MSWEB))'; fi; \
		$(RUN) experiments/$$script.py $(if $(FULL),--full) $(if $(FORMAT),--format=$(FORMAT)) $${msweb:+"$$msweb"} || exit 1; done

test: $(READY)
	$(MAKE) --no-print-directory --output-sync=target -j3 test-first test-second test-kernels test-third lint

# The longest parts of `test`, three at a time, as some wait for processes and connections: all that `pytest` would
# run, in three parts (tests/test_docs.py builds the pages), and the kernels without compilation, for their coverage.
FIRST := laws personal sampling data
SECOND := cli engines experiments recommendations web
test-first: $(READY)
	$(RUN) -m pytest -q --durations=40 $(addprefix tests/,$(FIRST))

test-second: $(READY)
	$(RUN) -m pytest -q --durations=40 $(addprefix tests/,$(SECOND))

test-third: $(READY)
	$(RUN) -m pytest -q --durations=40 tests src README.md docs $(addprefix --ignore=tests/,$(FIRST) $(SECOND))

test-kernels: $(READY)
	NUMBA_DISABLE_JIT=1 $(RUN) -m coverage run --source=src/pseudomallows/kernels -m pytest $(shell grep -rl --include=*.py mark.kernel tests) -q -p no:cacheprovider -m "kernel and not slow"
	$(RUN) -m coverage report --include='src/pseudomallows/kernels/*' --fail-under=98 --show-missing

# The coverage of all that is not compiled, by the whole fast suite; by hand, as it takes a while.
coverage: $(READY)
	$(RUN) -m coverage run -m pytest -q
	$(RUN) -m coverage report --omit='src/pseudomallows/kernels/*' --skip-covered

# The pages, into site/; a warning is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

test-slow: $(READY)
	$(RUN) -m pytest -m slow

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# The virtual environment, in two steps: what the demo needs, and on top of it the tools of the tests and pages. Both
# are made anew from the project's files whenever these change.
$(DEMO): pyproject.toml constraints.txt
	@echo "Installing NumPy, SciPy, Numba, polars and the command into .venv (some 150 MB) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) ".[cli,report]"
	@touch $(DEMO)

$(READY): $(DEMO)
	$(INSTALL) ".[dev]"
	touch $(READY)

constraints:
	uv pip compile pyproject.toml --all-extras --universal --no-header --no-annotate --quiet --upgrade --output-file constraints.txt

clean:
	rm -rf .venv demo paper site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
