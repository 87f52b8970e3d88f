# make demo, make fast, make test, make fuzz: each sets up what it needs by itself.

BIN := .venv/bin

.PHONY: setup check fast test test-all fuzz demo bench reference bench-gate clean

setup:
	@scripts/setup

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# laws, plans, policies, SQL: no Spark, one server
fast: check
	@scripts/test fast

# everything that proves the product; ARGS=tests/laws runs pytest with these arguments instead
test: check
	@scripts/test $(or $(ARGS),test)

# second proofs, both versions of PostgreSQL, long random runs
test-all: check
	@scripts/test all

fuzz: setup
	@$(BIN)/python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

demo: setup
	@$(BIN)/python -m pgtrickle.interfaces.demo $(ARGS)

bench: setup
	@$(BIN)/python -m bench $(ARGS)

# pages of the documentation that are written from the code's own tables
reference: setup
	@$(BIN)/python -m pgtrickle.interfaces.reference > docs/CONFIGURATION.md

# fails if a ratio is worse than in bench/baseline.json by more than a quarter; ARGS=--update writes it anew
bench-gate: setup
	@$(BIN)/python -m bench.gate $(ARGS)

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache spark-warehouse artifacts metastore_db bench/results
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
