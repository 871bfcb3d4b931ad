SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The targets share one build directory and one screen.
.NOTPARALLEL:

VENV := .venv
VENV_READY := $(VENV)/ready
UI_VERSION := 3.17.2
# The next one, which the server shows as well.
NEXT_UI_VERSION := 3.18.0
REQUIREMENTS := tools/requirements.txt tests/requirements.txt
# What deploying needs and nothing else, so that nobody installs MLflow and a browser for it.
DEPLOY_VENV := .venv-deploy
DEPLOY_READY := $(DEPLOY_VENV)/ready
DEPLOY_REQUIREMENTS := tools/deploy.txt tools/cargo-lambda.txt tools/zig.txt
# What stands in for AWS in the tests, and what judges the template: each pins another version of the same library.
EMULATOR_VENV := .venv-emulator
EMULATOR_READY := $(EMULATOR_VENV)/ready
CHECKOV_VENV := .venv-checkov
CHECKOV_READY := $(CHECKOV_VENV)/ready
# MLflow's clients of each age that is told what to set, for the tests of the deployed stack.
CLIENT_LISTS := tests/deployed/clients
CLIENTS_READY := $(patsubst $(CLIENT_LISTS)/%.txt,.venv-client-%/ready,$(filter-out %.alone.txt,$(wildcard $(CLIENT_LISTS)/*.txt)))
# Of `make deploy`: the part of samconfig.toml, parameters (NAME=VALUE ...), and resources that may be replaced.
ENVIRONMENT := default
PARAMETERS :=
ALLOW :=
# Of `make smoke`: the stack that is asked, whether a table is restored, and one check alone, by its name.
STACK :=
RESTORE :=
ONLY :=
# Of `make release`: cargo's profile (dev compiles in a fraction of the time), processors, and functions, program or both.
PROFILE := release
PROCESSORS := arm64 x86_64
PARTS := functions program
# In front, because tools find each other there.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export SAM_CLI_TELEMETRY := 0
# Every server of MLflow, and every client in a process of its own, takes 4 seconds of a core to import it; 10, if Python may not keep what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help imported run ui watch watch-bucket test lint test-rust test-python test-browser test-slow test-dynamodb validate checkov clients emulator deny advisories docs scale build link-arm64 deploy release restore smoke clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ui ## A server with MLflow's UI on http://127.0.0.1:5000, with the data in ./data
	cargo run --bin mlflow-serverless -- serve --data data $(if $(AUTH),--auth $(AUTH))

ui: ## Fetch MLflow's user interface into ./ui
	python3 tools/fetch_ui.py ui $(UI_VERSION)

watch: export AWS_REGION := local
watch: export TABLE_NAME := mlflow
watch: export ACCESS_MODE ?= none
watch: export ACCESS_TABLE_NAME := mlflow-access
watch: export ARTIFACT_ROOT ?= $(CURDIR)/data/artifacts
watch: export UI_DIRECTORY := $(CURDIR)/ui/build
watch: ui $(VENV_READY) ## The Lambda functions on http://127.0.0.1:9000, fed by the table's stream, built anew when their code changes
	cargo build --bin mlflow-serverless
	@# The engine says where it listens, and with what access key, into a file that nobody else can read.
	rm -f data/engine.txt; (umask 077; mkdir -p data; touch data/engine.txt); \
	target/debug/mlflow-serverless engine --port 8000 --data data --indexer-url http://127.0.0.1:9000 > data/engine.txt & \
	trap "kill $$!; rm -f data/engine.txt" EXIT; \
	until [ "$$(wc -l < data/engine.txt)" -ge 3 ]; do kill -0 $$!; sleep 0.1; done; \
	{ read -r endpoint; read -r id; read -r secret; } < data/engine.txt; \
	env -u AWS_SESSION_TOKEN "DYNAMODB_ENDPOINT=$$endpoint" "$$id" "$$secret" \
		cargo lambda watch --invoke-address 127.0.0.1 --disable-cors

watch-bucket: export ARTIFACT_ROOT := mlflow-artifacts:/
watch-bucket: export ARTIFACTS_DESTINATION := s3://mlflow/artifacts
watch-bucket: export AWS_ENDPOINT_URL_S3 := http://127.0.0.1:9001
watch-bucket: $(VENV_READY) ## The same with artifacts in a bucket: an S3 on http://127.0.0.1:9001, in memory until the end
	python -m tools.local_s3 9001 mlflow & trap "kill $$!" EXIT; $(MAKE) watch

test: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/tools/linting-rustc
test: export CLIPPY_ARGS := --deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
test: ## Everything that continuous integration checks
	cargo fmt --check
	@# One core installs the Python packages while Rust is compiled.
	mkdir -p target; trap 'kill $$(jobs -p) 2> /dev/null || :' EXIT; \
	$(MAKE) $(VENV_READY) $(EMULATOR_READY) imported > target/packages.log 2>&1 & packages=$$!; failed=0; \
	{ cargo test --workspace --no-run && cargo build --workspace; } || failed=1; \
	wait $$packages || { cat target/packages.log; failed=1; }; exit $$failed
	@# All at once: a test often waits, and then another one computes. Those in Python wait most, so they come first.
	trap 'kill $$(jobs -p) 2> /dev/null || :' EXIT; \
	nice $(MAKE) --keep-going validate deny link-arm64 > target/checks.log 2>&1 & checks=$$!; \
	nice $(MAKE) test-rust > target/rust.log 2>&1 & rust=$$!; failed=0; \
	$(MAKE) test-python || failed=1; \
	wait $$rust || failed=1; cat target/rust.log; \
	wait $$checks || { cat target/checks.log; failed=1; }; exit $$failed

# The processes of tests would otherwise compile the same modules at the same time.
imported: $(VENV_READY)
	python -m pytest tests --collect-only --quiet > target/imported.log || { tail -n 60 target/imported.log; exit 1; }

lint: ## Formatting and lints
	cargo fmt --check
	cargo clippy --workspace --all-targets -- --deny warnings

test-rust: $(VENV_READY) ## The tests of the crates
	@# These first, while tests in Python run as well: one core would wait for them at the end.
	cargo test --quiet --doc --workspace
	cargo nextest run --workspace
	python tools/slowest.py target/nextest/default/junit.xml

test-python: $(VENV_READY) $(EMULATOR_READY) ## MLflow's client, comparison with MLflow's server, the UI's pages in Chromium, the Lambda functions, and the stack deployed in an emulator
	cargo build --workspace
	@# What tests bound are ratios and counts (tests/README.md), so they may run beside others.
	python -m pytest tests --numprocesses 3 --dist loadgroup --durations 10

test-browser: $(VENV_READY) ## The pages of the next version of MLflow's UI in Chromium, on our server and on MLflow's: Debian's package chromium has to be installed
	cargo build --workspace
	python3 tools/fetch_ui.py target/ui-$(NEXT_UI_VERSION) $(NEXT_UI_VERSION)
	BROWSER_UI=target/ui-$(NEXT_UI_VERSION)/build python -m pytest tests/browser

# All of what `make test` has a sample of, too: whole ledgers, all troubles at each request, all searches.
test-slow: $(VENV_READY) $(EMULATOR_READY) $(CLIENTS_READY) checkov ## Large data, and 12,000 random searches and 2,000 random batches compared with MLflow's server, and all of what make test samples: more than an hour
	cargo build --workspace
	python -m pytest tests -m slow --ignore tests/browser
	$(MAKE) release PROFILE=dev PROCESSORS=x86_64
	RELEASED=$(CURDIR)/target/release-archive python -m pytest tests/release -m slow
	DEPLOYED_ARCHIVE=$$(ls -t target/release-archive/*-aws-x86_64.tar.gz | head -1) python -m pytest tests/deployed/test_deployed.py
	cargo build --release --bin mlflow-serverless
	MLFLOW_SERVERLESS_BIN=$(CURDIR)/target/release/mlflow-serverless python -m pytest tests/browser -m slow
	MLFLOW_SERVERLESS_BIN=$(CURDIR)/target/release/mlflow-serverless python -m pytest tests/client/test_artifacts.py -m slow -k "memory_of_uploads_to_a_bucket or memory_stays_below_64_mb"
	python -m tests.compare.generator --filters 10000 --batches 2000 --traces 2000 --seed 7
	python -m tests.compare.generator --filters 1800 --batches 0 --runs 400 --writes 0.2 --seed 8 --indexer running
	python -m tests.compare.generator --filters 1800 --batches 0 --runs 400 --writes 0.2 --seed 9 --indexer stopped
	python -m tests.compare.generator --filters 1800 --batches 0 --runs 400 --writes 0.2 --seed 10 --indexer delayed
	RANDOM_SEARCHES=2000 cargo nextest run --workspace --run-ignored all -E 'test(/^indexed_search::/)'
	ALL_TROUBLES=1 MODEL_SECONDS=600 MODEL_SEED=1000000 cargo nextest run --workspace --profile slow -E '(test(/^(cut_off|faults|power_cut|throttling|unreadable|users)::/) & package(mlflow-serverless)) + (test(/^(charts|creations|documents|experiment_lists|history|inputs|journal|logged_models|malformed|packing|paging|wide_runs)::/) & package(tracking)) + (test(/^(aliases|creations|documents|renaming|search)::/) & package(registry)) + (test(/^creations::/) & package(evaluation)) + (test(/^histories::/) & package(housekeeper)) + (test(/^removal::/) & package(traces))'
	ALL_SEARCHES=1 RANDOM_TABLES=3 cargo nextest run --workspace --run-ignored all -E '(test(/^(blocks|client_requests|consumer|packer|recorded)::/) & package(traces)) + (test(/(like|tokens)::/) & package(search))'
	WHOLE_LEDGERS=1 cargo nextest run --workspace --profile slow -E 'test(/ledger/)'
	@# The program of the release before serves one table together with this version.
	RELEASED_BIN=$$(python tools/released.py); export RELEASED_BIN; \
	cargo nextest run --workspace --profile slow --run-ignored only -E 'not test(over_dynamodb)'

test-dynamodb: ## The store's requests against DynamoDB, with the environment's AWS credentials, on a table of their own that is removed afterwards
	cargo test --package tracking --test it -- --ignored --exact conformance::over_dynamodb

validate: $(VENV_READY) ## Check template.yaml
	sam validate --lint --region us-east-1

checkov: $(CHECKOV_READY) ## Look for what template.yaml leaves open, but for what was reviewed (tools/checkov.yaml)
	$(CHECKOV_VENV)/bin/checkov --config-file tools/checkov.yaml

clients: $(CLIENTS_READY) ## Clients of MLflow of each age, with which make test-slow sends models to the deployed stack

emulator: $(EMULATOR_READY) ## What stands in for AWS in tests/deployed

deny: $(VENV_READY) ## Check the licences and sources of the dependencies
	cargo deny check licenses bans sources

advisories: ## Look whether a hole was found in a dependency: a job does once a week (.github/workflows)
	cargo deny check advisories

docs: ## Write what is generated from the code: table reference, coverage, capacity, the table in template.yaml, and what all of it costs
	cargo run --package domains --bin template
	UPDATE_DOCS=1 cargo test --workspace --test generated
	UPDATE_DOCS=1 cargo test --workspace --test it -- generated:: access_page::
	@# From the capacity pages and the template, as they are by now.
	python3 -m tools.cost

scale: ## Write docs/measured/scale.md: a model of many jobs and traces in one experiment, more than an hour
	cargo build --workspace --bin sweep
	target/debug/sweep

# SAM finds zig only in the Python that it finds first.
build: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
build: ui $(DEPLOY_READY) ## The functions for Lambda, arm64, into .aws-sam
	rustup target add aarch64-unknown-linux-gnu
	sam build

# A development build, of what is smallest: that the libraries in C are compiled and linked for it, too. In a directory of its own, since cargo
# locks the other for as long as tests are compiled and started there.
link-arm64: export CARGO_TARGET_DIR := $(CURDIR)/target/arm64
link-arm64: export CARGO_PROFILE_DEV_DEBUG := false
link-arm64: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
# It never runs, so nothing is compiled for the case that something goes wrong: a sixth less to do.
link-arm64: export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS := false
link-arm64: export CARGO_PROFILE_DEV_OVERFLOW_CHECKS := false
link-arm64: export CARGO_PROFILE_DEV_PANIC := abort
link-arm64: $(VENV_READY) ## One function, compiled and linked for the processor of the stack's functions
	@# Where no standard library for it can be fetched, there is nothing to link with.
	if rustup target add aarch64-unknown-linux-gnu; then \
		env -u RUSTC_WORKSPACE_WRAPPER cargo lambda build --locked --profile dev --target aarch64-unknown-linux-gnu --package ui --bin ui \
			--lambda-dir target/arm64/functions; \
	else \
		echo "Nothing is linked for arm64: rustup does not fetch its standard library here" >&2; \
	fi

release: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
release: ui $(DEPLOY_READY) ## What a release passes on, into target/release-archive: PROFILE=dev, PROCESSORS=x86_64, PARTS=functions
	python tools/release --profile $(PROFILE) --processors $(PROCESSORS) --only $(PARTS)

# What can be found out without fetching and building anything is found out first.
deploy: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
deploy: DEPLOY := python tools/deploy --environment $(ENVIRONMENT) $(if $(PARAMETERS),--parameters $(PARAMETERS)) $(if $(ALLOW),--allow $(ALLOW))
deploy: $(DEPLOY_READY) ## Create or update the stack in the AWS account of the current profile: ENVIRONMENT=dev, PARAMETERS="Workspaces=on", ALLOW=UsersApi
	$(DEPLOY) --check
	$(MAKE) ui
	$(DEPLOY)

# The command that ends sessions and tokens is the program's own.
restore: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
restore: $(DEPLOY_READY) ## Restore both tables of a stack to one moment, under new names: STACK=mlflow AT=2030-01-31T12:00:00Z, and INTO=dev to deploy on them
	cargo build --release --bin mlflow-serverless
	$(if $(INTO),$(MAKE) build)
	python tools/restore --stack $(STACK) --at $(AT) --program target/release/mlflow-serverless $(if $(INTO),--into $(INTO) --built)

smoke: $(if $(STACK),$(DEPLOY_READY)) ## Ask a deployed stack what no emulator can tell: STACK=mlflow, at most 20 minutes and a dollar; RESTORE=1 restores a table, too
	@test -n "$(STACK)" || { echo "Say which stack: make smoke STACK=mlflow" >&2; exit 2; }
	$(DEPLOY_VENV)/bin/python -m tools.smoke --stack $(STACK) $(if $(RESTORE),--restore) $(if $(ONLY),--only "$(ONLY)")

clean: ## Remove everything that was built; ./data stays
	rm -rf target .aws-sam ui $(VENV) $(DEPLOY_VENV) $(EMULATOR_VENV) $(CHECKOV_VENV) .venv-client-*

# uv finds out which versions fit each other with a tenth of pip's work. It reads no settings of pip: behind a mirror that only pip knows of, pip does it
# once uv has given up.
UV := uv==0.13.9
install = $(@D)/bin/pip install --quiet $(UV) && $(@D)/bin/uv pip install --quiet --python $(@D)/bin/python $(1) || $(@D)/bin/pip install --quiet --no-compile $(1)

# A failed installation leaves no stamp, and a changed list starts from nothing, so that no package is left over.
$(VENV_READY): $(REQUIREMENTS) tools/deploy.txt tools/cargo-lambda.txt tools/zig.txt clients/python/pyproject.toml
	python3 -m venv --clear $(VENV)
	@# Most of what is installed is never imported, so nothing is compiled ahead. With zig, by which cargo-lambda links for another processor.
	$(call install,$(REQUIREMENTS:%=--requirement %) --requirement tools/cargo-lambda.txt --requirement tools/zig.txt)
	touch $@

$(DEPLOY_READY): $(DEPLOY_REQUIREMENTS)
	python3 -m venv --clear $(DEPLOY_VENV)
	$(call install,$(DEPLOY_REQUIREMENTS:%=--requirement %))
	touch $@

$(EMULATOR_READY): tests/deployed/requirements.txt
	python3 -m venv --clear $(EMULATOR_VENV)
	$(call install,--requirement $<)
	touch $@

$(CHECKOV_READY): tools/checkov.txt
	python3 -m venv --clear $(CHECKOV_VENV)
	$(call install,--requirement $<)
	touch $@

# What the second list has is installed without what it asks for.
$(CLIENTS_READY): .venv-client-%/ready: $(CLIENT_LISTS)/%.txt clients/python/pyproject.toml
	python3 -m venv --clear $(@D)
	$(call install,--requirement $<)
	for list in $(wildcard $(CLIENT_LISTS)/$*.alone.txt); do $(@D)/bin/pip install --quiet --no-compile --no-deps --requirement $$list; done
	touch $@
