PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= examples,test,parquet,arrow
# Handed to pytest by `make test` and `make proof`, for example ARGS="tests/unit -x": in place of the whole suite, whose
# parts run side by side (tests/suite). To the benchmarks by `make bench`, and by `make simulate` and `make chaos`:
# ARGS="--record docs/faults_run.json" keeps how often which fault came.
ARGS ?=
# Of `make test` and `make proof`: after how many seconds what still runs is ended, and said to have failed.
WITHIN ?=
# Of `make simulate`: how many seeds, and the first of them. Seeds that begin where the recorded ones ended are added to
# them, so that a long run can be done in parts.
SEEDS ?= 20000
FIRST ?= 0
# How many faults `make chaos` injects, and by which seed they are drawn; by another one each time where not set.
FAULTS ?= 40
SEED ?=
# How many bad inputs `make fuzz` makes.
INPUTS ?= 100000

BIN := $(VENV)/bin
READY := $(VENV)/.ready
INCOMPLETE := $(VENV)/.incomplete

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@echo "Usage: make TARGET [PYTHON=python3] [VENV=.venv]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: env ## Make the environment and run the main job, examples.flight_delays
	$(BIN)/stormline run examples.flight_delays

.PHONY: test
test: env postgresql mariadb redis kafka ## Make the environment, lint, and run all tests but the proofs (ARGS="..." goes to pytest instead)
	$(if $(strip $(ARGS)),$(BIN)/python -m pytest -m "not proof" --durations=10 $(ARGS),$(BIN)/python -m tests.suite test $(addprefix --within ,$(WITHIN)))

.PHONY: proof
proof: env postgresql mariadb redis kafka ## Run the proofs: 20,000 seeds, all mutants, 40 faults, 100,000 bad inputs, servers' bad days
	$(if $(strip $(ARGS)),$(BIN)/python -m pytest -m proof --durations=10 $(ARGS),$(BIN)/python -m tests.suite proof $(addprefix --within ,$(WITHIN)))

.PHONY: chaos
chaos: env kafka ## Break a real cluster FAULTS=40 times, drawn by SEED, and check every tuple (ARGS="--keep DIR")
	@sh scripts/check_postgresql.sh
	$(BIN)/python -m tests.chaos --faults $(FAULTS) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: postgresql
postgresql: ## Check for PostgreSQL, for the tests that break real services; on Debian, as root, install it if missing
	@sh scripts/check_postgresql.sh optional

.PHONY: mariadb
mariadb: ## Check for MariaDB, for the tests of stores; on Debian, as root, install it if missing
	@sh scripts/check_mariadb.sh optional

.PHONY: redis
redis: ## Check for Redis, for the tests of stores; on Debian, as root, install it if missing
	@sh scripts/check_redis.sh optional

.PHONY: kafka
kafka: env ## Check for the jars of a Kafka broker, for the tests of its spouts; fetch them if missing
	@sh scripts/check_kafka.sh $(BIN) optional

.PHONY: fuzz
fuzz: env ## Give bad bytes to all that comes from outside (INPUTS=100000, SEED)
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) $(if $(SEED),--seed $(SEED))

.PHONY: lint
lint: env ## Check style, format, types, public docstrings and which room imports which
	@sh scripts/lint.sh $(BIN)

.PHONY: format
format: env ## Format the code and apply the safe fixes
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

.PHONY: env
env: java $(READY) ## Make the environment in .venv; does nothing if it is up to date

.PHONY: java
java: ## Check for Java 17 or newer; on Debian, as root, install it if missing
	@sh scripts/check_java.sh

# While an install is under way .incomplete exists; one left over means that the last was broken off, so start anew.
$(READY): setup.cfg pyproject.toml
	@sh scripts/check_python.sh "$(PYTHON)"
	@if [ -e $(INCOMPLETE) ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then rm -rf $(VENV); fi
	@mkdir -p $(VENV) && touch $(INCOMPLETE)
	@echo "Making the environment in $(VENV): a few minutes the first time, Spark is large."
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=23.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@rm -f $(INCOMPLETE) && touch $@

.PHONY: clean
clean: ## Remove caches, build output and the state of runs here (.stormline), but not .venv
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf .stormline spark-warehouse metastore_db derby.log
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

.PHONY: simulate
simulate: env ## Simulate SEEDS=20000 histories full of faults; each that fails says how to repeat it (FIRST=0)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST) $(ARGS)

.PHONY: mutants
mutants: env ## Break the protocol on purpose in a copy, fault by fault: model or simulation kills each (ARGS="--only NAME")
	$(BIN)/python -m tests.mutants $(ARGS)

.PHONY: docs
docs: env ## Write the pages of docs/ that come from the code
	$(BIN)/python -m docs.generate

.PHONY: bench
bench: ## Make an environment in .venv-bench and measure all, other engines too: an hour (ARGS="--only P1")
	@$(MAKE) --no-print-directory env VENV=.venv-bench EXTRAS=bench
	@sh scripts/check_kafka.sh .venv-bench/bin optional
	.venv-bench/bin/python -m benchmarks $(ARGS)
