SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# All targets share one build directory and one terminal.
.NOTPARALLEL:

VENV := .venv
VENV_READY := $(VENV)/ready
UI_VERSION := 3.17.2
# The next version of the UI, which the server also has to display.
NEXT_UI_VERSION := 3.18.0
REQUIREMENTS := tools/requirements.txt tests/requirements.txt
# Features of tests and lints: databases that `import` reads, whose drivers `make run` does not need.
FEATURES := --features mlflow-serverless/sql-servers
# Requirements of deployments only, so that deploying does not install MLflow and a browser.
DEPLOY_VENV := .venv-deploy
DEPLOY_READY := $(DEPLOY_VENV)/ready
DEPLOY_REQUIREMENTS := tools/deploy.txt tools/cargo-lambda.txt tools/zig.txt
# The AWS emulator of the tests, and the linter of the template. They pin different versions of the
# same library.
EMULATOR_VENV := .venv-emulator
EMULATOR_READY := $(EMULATOR_VENV)/ready
CHECKOV_VENV := .venv-checkov
CHECKOV_READY := $(CHECKOV_VENV)/ready
# MLflow clients of each generation that needs different settings, for the tests of the deployed
# stack.
CLIENT_LISTS := tests/deployed/clients
CLIENTS_READY := $(patsubst $(CLIENT_LISTS)/%.txt,.venv-client-%/ready,$(filter-out %.alone.txt,$(wildcard $(CLIENT_LISTS)/*.txt)))
# For `make deploy`: the section of samconfig.toml, parameters (NAME=VALUE ...), and resources that
# may be replaced.
ENVIRONMENT := default
PARAMETERS :=
ALLOW :=
# For `make deploy`: a role that CloudFormation assumes. For `make admin`: the name of the user, and a
# custom domain of the API.
ROLE :=
NAME :=
URI :=
# For `make smoke`: the stack to check, whether to restore a table, and the name of a single check
# to run.
STACK :=
RESTORE :=
ONLY :=
# For `make release`: cargo's profile (dev compiles in a fraction of the time), processors, and
# functions, program or both.
PROFILE := release
PROCESSORS := arm64 x86_64
PARTS := functions program
SYSTEM := linux
# For `make publish`: an archive of functions, the prefix of the buckets, and their regions.
ARCHIVE :=
BUCKETS :=
REGIONS :=
# At the front of PATH, because tools find each other by it.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export SAM_CLI_TELEMETRY := 0
# Importing MLflow takes 4 s of CPU time for every server and client process, or 10 s if Python must
# not cache bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help imported run ui watch watch-bucket test lint spelling test-rust test-python test-browser test-slow test-dynamodb validate checkov clients emulator deny advisories docs scale build link-arm64 deploy admin delete release publish restore smoke clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ui ## Run a server with MLflow's UI on http://127.0.0.1:5000, with its data in ./data
	cargo run --bin mlflow-serverless -- serve --data data $(if $(AUTH),--auth $(AUTH))

ui: ## Fetch MLflow's user interface into ./ui
	python3 tools/fetch_ui.py ui $(UI_VERSION)

watch: export AWS_REGION := local
watch: export TABLE_NAME := mlflow
watch: export ACCESS_MODE ?= none
watch: export ACCESS_TABLE_NAME := mlflow-access
watch: export ARTIFACT_ROOT ?= $(CURDIR)/data/artifacts
watch: export UI_DIRECTORY := $(CURDIR)/ui/build
# Functions invoke each other. Receivers of webhooks may be on this machine.
watch: export AWS_ENDPOINT_URL_LAMBDA := http://127.0.0.1:9000
watch: export WEBHOOKS_ALLOW_HTTP := on
watch: export WEBHOOKS_ALLOW_PRIVATE_ADDRESSES := on
watch: ui $(VENV_READY) ## Run the Lambda functions on http://127.0.0.1:9000, fed by the table's stream, and rebuild them when their code changes
	cargo build --bin mlflow-serverless
	@# The engine writes its URL and access key to a file that only this user can read.
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
watch-bucket: $(VENV_READY) ## Run make watch with artifacts in a bucket, on an in-memory S3 at http://127.0.0.1:9001
	python -m tools.local_s3 9001 mlflow & trap "kill $$!" EXIT; $(MAKE) watch

test: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/tools/linting-rustc
test: export CLIPPY_ARGS := --deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
test: ## Run everything that continuous integration checks
	cargo fmt --check
	@# Installs the Python packages on one core while Rust is compiled.
	mkdir -p target; trap 'kill $$(jobs -p) 2> /dev/null || :' EXIT; \
	$(MAKE) $(VENV_READY) $(EMULATOR_READY) imported > target/packages.log 2>&1 & packages=$$!; failed=0; \
	{ cargo test --workspace $(FEATURES) --no-run && cargo build --workspace $(FEATURES); } || failed=1; \
	wait $$packages || { cat target/packages.log; failed=1; }; exit $$failed
	@# Runs everything concurrently, because tests often wait. Python tests wait most, so they get the highest priority.
	trap 'kill $$(jobs -p) 2> /dev/null || :' EXIT; \
	nice $(MAKE) --keep-going validate deny spelling link-arm64 > target/checks.log 2>&1 & checks=$$!; \
	nice $(MAKE) test-rust > target/rust.log 2>&1 & rust=$$!; failed=0; \
	$(MAKE) test-python || failed=1; \
	wait $$rust || failed=1; cat target/rust.log; \
	wait $$checks || { cat target/checks.log; failed=1; }; exit $$failed

# Precompiles imported modules, which concurrent test processes would otherwise all compile at the
# same time.
imported: $(VENV_READY)
	python -m pytest tests --collect-only --quiet > target/imported.log || { tail -n 60 target/imported.log; exit 1; }

spelling: $(VENV_READY) ## Check the spelling of code and documents
	typos

lint: spelling ## Check formatting, lints and spelling
	cargo fmt --check
	cargo clippy --workspace $(FEATURES) --all-targets -- --deny warnings

test-rust: $(VENV_READY) ## Run the tests of the crates
	@# Doc tests run first, alongside the Python tests. At the end, they would only use one core.
	cargo test --quiet --doc --workspace $(FEATURES)
	cargo nextest run --workspace $(FEATURES)
	python tools/slowest.py target/nextest/default/junit.xml

test-python: $(VENV_READY) $(EMULATOR_READY) ## Run the Python tests: MLflow's client, comparison with MLflow's server, the UI's pages in Chromium, the Lambda functions, and the stack deployed in an emulator
	cargo build --workspace $(FEATURES)
	@# Tests only limit ratios and counts (tests/README.md), so they can run alongside others.
	python -m pytest tests --numprocesses 3 --dist loadgroup --durations 10

test-browser: $(VENV_READY) ## Test the pages of the next version of MLflow's UI in Chromium, on our server and on MLflow's. Requires Debian's package chromium
	cargo build --workspace $(FEATURES)
	python3 tools/fetch_ui.py target/ui-$(NEXT_UI_VERSION) $(NEXT_UI_VERSION)
	BROWSER_UI=target/ui-$(NEXT_UI_VERSION)/build python -m pytest tests/browser

# Also covers everything that `make test` only samples: whole ledgers, all faults at each request,
# all searches.
test-slow: $(VENV_READY) $(EMULATOR_READY) $(CLIENTS_READY) checkov ## Run the slow tests, for more than an hour: large data, 12,000 random searches and 2,000 random batches compared with MLflow's server, and everything that make test samples
	cargo build --workspace $(FEATURES)
	python -m pytest tests -m slow --ignore tests/browser
	$(MAKE) release PROFILE=dev PROCESSORS=x86_64
	RELEASED=$(CURDIR)/target/release-archive python -m pytest tests/release -m slow
	DEPLOYED_ARCHIVE=$$(ls -t target/release-archive/*-aws-x86_64.tar.gz | head -1); export DEPLOYED_ARCHIVE; \
	python -m pytest tests/deployed/test_deployed.py; python -m pytest tests/deployed/test_archive.py -m slow
	cargo build --release --bin mlflow-serverless
	MLFLOW_SERVERLESS_BIN=$(CURDIR)/target/release/mlflow-serverless python -m pytest tests/browser -m slow
	MLFLOW_SERVERLESS_BIN=$(CURDIR)/target/release/mlflow-serverless python -m pytest tests/client/test_artifacts.py -m slow -k "memory_of_uploads_to_a_bucket or memory_stays_below_64_mb"
	python -m tests.compare.generator --filters 10000 --batches 2000 --traces 2000 --seed 7
	python -m tests.compare.generator --filters 1800 --batches 0 --runs 400 --writes 0.2 --seed 8 --indexer running
	python -m tests.compare.generator --filters 1800 --batches 0 --runs 400 --writes 0.2 --seed 9 --indexer stopped
	python -m tests.compare.generator --filters 1800 --batches 0 --runs 400 --writes 0.2 --seed 10 --indexer delayed
	RANDOM_SEARCHES=2000 cargo nextest run --workspace $(FEATURES) --run-ignored all -E 'test(/^indexed_search::/)'
	ALL_TROUBLES=1 MODEL_SECONDS=600 MODEL_SEED=1000000 cargo nextest run --workspace $(FEATURES) --profile slow -E '(test(/^(interrupted_revocation|faults|power_cut|throttling|broken_items|users)::/) & package(mlflow-serverless)) + (test(/^(charts|creations|documents|experiment_lists|history|journal|logged_models|rejected_requests|run_inputs|run_packing|search_pages|wide_runs)::/) & package(tracking)) + (test(/^(aliases|creations|documents|renaming|search)::/) & package(registry)) + (test(/^creations::/) & (package(evaluation) + package(mcp-servers) + package(skills))) + (test(/^changes::/) & package(webhooks)) + (test(/^history_policy::/) & package(housekeeper)) + (test(/^removal::/) & package(traces))'
	ALL_SEARCHES=1 RANDOM_TABLES=3 cargo nextest run --workspace $(FEATURES) --run-ignored all -E '(test(/^(blocks|client_requests|recorded_searches|search_while_packing|stream_consumer)::/) & package(traces)) + (test(/(like|tokens)::/) & package(search))'
	WHOLE_LEDGERS=1 cargo nextest run --workspace $(FEATURES) --profile slow -E 'test(/ledger/)'
	@# The program of the previous release serves the same table as this version.
	RELEASED_BIN=$$(python tools/released.py); export RELEASED_BIN; \
	cargo nextest run --workspace $(FEATURES) --profile slow --run-ignored only -E 'not test(over_dynamodb)'

test-dynamodb: ## Test the store's requests against DynamoDB, with the environment's AWS credentials, on a temporary table
	cargo test --package tracking --test it -- --ignored --exact conformance::over_dynamodb

validate: $(VENV_READY) ## Check template.yaml, for all regions
	sam validate --lint --region us-east-1
	python -m tools.regions

checkov: $(CHECKOV_READY) ## Scan template.yaml for security problems, except those reviewed in tools/checkov.yaml
	$(CHECKOV_VENV)/bin/checkov --config-file tools/checkov.yaml

clients: $(CLIENTS_READY) ## Install MLflow clients of several versions, which make test-slow runs against the deployed stack

emulator: $(EMULATOR_READY) ## Install the AWS emulator of tests/deployed

deny: $(VENV_READY) ## Check the licences and sources of the dependencies
	cargo deny check licenses bans sources

advisories: ## Check the dependencies for published vulnerabilities, which also happens once a week (.github/workflows)
	cargo deny check advisories

docs: ## Generate the pages and sections that depend on the code: table reference, coverage, capacity, cost, and sections of template.yaml
	cargo run --package domains --bin template
	UPDATE_DOCS=1 cargo test --workspace --test generated
	UPDATE_DOCS=1 cargo test --workspace --test it -- generated:: access_page::
	@# The cost page is computed from the capacity pages and the template, which are up to date by now.
	python3 -m tools.cost

scale: ## Generate docs/measured/scale.md from a model of many jobs and traces in one experiment, for more than an hour
	cargo build --profile optimized -p sweep
	target/optimized/sweep
	python3 -m tools.cost

# SAM only finds zig in the Python environment that is first in PATH.
build: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
build: ui $(DEPLOY_READY) ## Build the functions for Lambda on arm64 into .aws-sam
	rustup target add aarch64-unknown-linux-gnu
	sam build

# A development build of the smallest function, which checks that the C libraries compile and link
# for arm64, too. It has a build directory of its own, because cargo locks the other one while tests
# are compiled and started there.
link-arm64: export CARGO_TARGET_DIR := $(CURDIR)/target/arm64
link-arm64: export CARGO_PROFILE_DEV_DEBUG := false
link-arm64: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
# The result is never executed, so checks and unwinding are left out, which saves a sixth of the
# work.
link-arm64: export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS := false
link-arm64: export CARGO_PROFILE_DEV_OVERFLOW_CHECKS := false
link-arm64: export CARGO_PROFILE_DEV_PANIC := abort
link-arm64: $(VENV_READY) ## Compile and link one function for the processor of the stack's functions
	@# Linking requires the standard library for arm64, which may not be available for download.
	if rustup target add aarch64-unknown-linux-gnu; then \
		env -u RUSTC_WORKSPACE_WRAPPER cargo lambda build --locked --profile dev --target aarch64-unknown-linux-gnu --package ui --bin ui \
			--lambda-dir target/arm64/functions; \
	else \
		echo "Skipping the arm64 build: rustup cannot fetch its standard library" >&2; \
	fi

release: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
release: ui $(DEPLOY_READY) ## Build the archives of a release into target/release-archive: PROFILE=dev, PROCESSORS=x86_64, PARTS=functions
	python tools/release --profile $(PROFILE) --processors $(PROCESSORS) --only $(PARTS) --system $(SYSTEM)

publish: $(DEPLOY_READY) ## Upload an archive for "Launch Stack" buttons to the buckets BUCKETS-REGION: ARCHIVE=path BUCKETS=mlflow-serverless REGIONS="eu-central-1 us-east-1"
	@test -n "$(ARCHIVE)" && test -n "$(BUCKETS)" && test -n "$(REGIONS)" || { echo "Set ARCHIVE, BUCKETS and REGIONS" >&2; exit 2; }
	$(DEPLOY_VENV)/bin/python tools/release/publish.py $(ARCHIVE) --buckets $(BUCKETS) --regions $(REGIONS)

# All checks that do not require a download or build run first.
deploy: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
deploy: DEPLOY := python tools/deploy --environment $(ENVIRONMENT) $(if $(PARAMETERS),--parameters $(PARAMETERS)) $(if $(ALLOW),--allow $(ALLOW)) $(if $(ROLE),--role-arn $(ROLE))
deploy: $(DEPLOY_READY) ## Create or update the stack in the AWS account of the current profile: ENVIRONMENT=dev, PARAMETERS="Workspaces=on", ALLOW=UsersApi
	$(DEPLOY) --check
	$(MAKE) ui
	$(DEPLOY)

admin: $(DEPLOY_READY) ## Create an administrator of a deployed stack, with the credentials of the current profile: NAME=ann, ENVIRONMENT=dev, URI=https://ml.example.com
	@test -n "$(NAME)" || { echo "Set NAME: make admin NAME=ann" >&2; exit 2; }
	$(DEPLOY_VENV)/bin/python tools/deploy --environment $(ENVIRONMENT) --admin "$(NAME)" $(if $(URI),--tracking-uri $(URI))

delete: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
delete: $(DEPLOY_READY) ## Delete a stack and its budget, but not its tables and its bucket: STACK=mlflow, or ENVIRONMENT=dev STACK=mlflow-dev
	@test -n "$(STACK)" || { echo "Set STACK to the name of the stack: make delete STACK=mlflow" >&2; exit 2; }
	python tools/deploy --environment $(ENVIRONMENT) --delete "$(STACK)"

# The restore uses the program's command that ends sessions and tokens.
restore: export PATH := $(CURDIR)/$(DEPLOY_VENV)/bin:$(PATH)
restore: $(DEPLOY_READY) ## Restore both tables of a stack to the same point in time, under new names: STACK=mlflow AT=2030-01-31T12:00:00Z, and INTO=dev to deploy on them
	cargo build --release --bin mlflow-serverless
	$(if $(INTO),$(MAKE) build)
	python tools/restore --stack $(STACK) --at $(AT) --program target/release/mlflow-serverless $(if $(INTO),--into $(INTO) --built)

smoke: $(if $(STACK),$(DEPLOY_READY)) ## Check on a deployed stack what an emulator cannot: STACK=mlflow, at most 20 minutes and a dollar; RESTORE=1 also restores a table
	@test -n "$(STACK)" || { echo "Set STACK: make smoke STACK=mlflow" >&2; exit 2; }
	$(DEPLOY_VENV)/bin/python -m tools.smoke --stack $(STACK) $(if $(RESTORE),--restore) $(if $(ONLY),--only "$(ONLY)")

clean: ## Remove everything that was built, but keep ./data
	rm -rf target .aws-sam ui $(VENV) $(DEPLOY_VENV) $(EMULATOR_VENV) $(CHECKOV_VENV) .venv-client-*

# uv resolves dependencies with a tenth of pip's work. It ignores pip's configuration, so behind a
# mirror that only pip is configured for, pip takes over after uv has failed.
UV := uv==0.13.9
install = $(@D)/bin/pip install --quiet $(UV) && $(@D)/bin/uv pip install --quiet --python $(@D)/bin/python $(1) || $(@D)/bin/pip install --quiet --no-compile $(1)

# A failed installation leaves no stamp, and a changed list starts from an empty environment, so
# that no package is left over.
$(VENV_READY): $(REQUIREMENTS) tools/deploy.txt tools/cargo-lambda.txt tools/zig.txt clients/python/pyproject.toml
	python3 -m venv --clear $(VENV)
	@# Nothing is precompiled, because most modules are never imported. Includes zig, which cargo-lambda uses for cross-linking.
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

# Packages in the second list are installed without their dependencies.
$(CLIENTS_READY): .venv-client-%/ready: $(CLIENT_LISTS)/%.txt clients/python/pyproject.toml
	python3 -m venv --clear $(@D)
	$(call install,--requirement $<)
	for list in $(wildcard $(CLIENT_LISTS)/$*.alone.txt); do $(@D)/bin/pip install --quiet --no-compile --no-deps --requirement $$list; done
	touch $@
