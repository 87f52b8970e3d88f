# make demo, make fast, make test, make fuzz: each sets up what it needs by itself.

BIN := .venv/bin

.PHONY: setup pooler promtool dbt browser check fast test test-all fuzz demo bench reference screenshots docs bench-gate clean

setup:
	@scripts/setup

# PgBouncer, for tests and measurements
pooler:
	@scripts/setup pooler

# the tool of Prometheus that checks metrics and alert rules, for tests
promtool: setup
	@scripts/setup promtool

# dbt in an environment of its own, for the tests of dbt/
dbt:
	@scripts/setup dbt

# Chromium, for the tests of the web page and its screenshots
browser:
	@scripts/setup browser

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# laws, plans, policies, SQL: no Spark, one server
fast: check pooler promtool
	@scripts/test fast

# everything that proves the product; ARGS=tests/laws runs pytest with these arguments instead
test: check pooler promtool dbt browser
	@scripts/test $(or $(ARGS),test)

# second proofs, both versions of PostgreSQL, long random runs
test-all: check pooler promtool dbt browser
	@scripts/test all

fuzz: setup
	@$(BIN)/python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

demo: setup
	@$(BIN)/python -m pgtrickle.interfaces.demo $(ARGS)

bench: setup pooler
	@$(BIN)/python -m bench $(ARGS)

# pages of the documentation that are written from the code's own tables
reference: setup
	@$(BIN)/python -m pgtrickle.interfaces.reference > docs/CONFIGURATION.md
	@$(BIN)/python -m pgtrickle.interfaces.sql_reference > docs/SQL.md
	@$(BIN)/python -m pgtrickle.interfaces.cli_reference > docs/CLI.md
	@$(BIN)/python -m pgtrickle.interfaces.python_reference > docs/PYTHON.md
	@$(BIN)/python -m pgtrickle.interfaces.error_reference > docs/ERRORS.md

# the pictures of the web page in the documentation, taken with a real browser
screenshots: setup browser
	@$(BIN)/python -m tests.page.screenshots docs/images

# the documentation as a site, in site/; any warning is an error
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# fails if a ratio is worse than in bench/baseline.json by more than a quarter; ARGS=--update writes it anew
bench-gate: setup
	@$(BIN)/python -m bench.gate $(ARGS)

clean:
	rm -rf .venv .venv-dbt build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache spark-warehouse artifacts metastore_db site bench/results
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
