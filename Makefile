# Run `make` without arguments to list the targets. STACK selects the stack: dev (the
# default), prod, or, with STACKS=examples, one in examples/.
STACK ?= dev
STACKS ?= .

SANDBOX := .sandbox/bin/sandbox

# A file or a URL with compiled programs of the sandbox: by default, the file of a release, if it is
# next to the clone.
TOOLCHAIN ?= $(wildcard ../persia-toolchain.tar.gz)
ARCHIVE = $(if $(TOOLCHAIN),--archive '$(TOOLCHAIN)')

# How many end-to-end tests run in parallel.
PARALLEL ?= 4

# `make lint` runs go vet with all of its checks, over the tests too.
VETTED := -vet=off

# Tests make much garbage. With Go's default, those of sandbox/gcp spend a third of their time on it.
GARBAGE := GOGC=400

# Everything is compiled alike, so that the compiler sees each package once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help up train preview down status kubeconfig test tests nightly unit unit-program unit-sandbox lint bench build sandbox toolchain toolchain-archive e2e node-packages test-packages preflight comment release pictures recording

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: sandbox ## Create or update STACK in the sandbox.
	@$(SANDBOX) up --stack $(STACK) --stacks $(STACKS) $(ARCHIVE)

train: STACK = train
train: STACKS = examples
train: sandbox node-packages ## Train examples/Pulumi.train.yaml with PERSIA's own processes on a real node.
	@$(SANDBOX) train --stack $(STACK) --stacks $(STACKS) $(ARCHIVE)

preview: sandbox ## Show what `make up` would do.
	@$(SANDBOX) preview --stack $(STACK) --stacks $(STACKS) $(ARCHIVE)

comment: sandbox ## Print the preview as a pull request comment.
	@go run ./cmd/persia comment --stack $(STACK) -- $(SANDBOX) preview --stack $(STACK) --stacks $(STACKS)

down: sandbox ## Destroy STACK and stop everything that `make up` started.
	@$(SANDBOX) down --stack $(STACK) --stacks $(STACKS)

status: sandbox ## Show the nodes, pods, and endpoints of STACK.
	@$(SANDBOX) status --stack $(STACK) --stacks $(STACKS)

kubeconfig: sandbox ## Print the path of the kubeconfig of STACK.
	@$(SANDBOX) kubeconfig --stack $(STACK) --stacks $(STACKS)

# Cold is a run before which Go has compiled nothing.
test: ## Run all linters and tests, and record the time.
	@scripts/record-time.sh "make test, $$([ -d "$$(go env GOCACHE)/00" ] && echo warm || echo cold)" $(MAKE) --no-print-directory tests

# The quick tests use the time that the end-to-end tests wait.
tests: lint node-packages test-packages
	@$(MAKE) --no-print-directory unit & $(MAKE) --no-print-directory e2e; e2e=$$?; wait $$! && exit $$e2e

# Most of these tests wait for pods and controllers, so more of them run in parallel than
# there are cores.
e2e: toolchain ## Run the end-to-end tests. They log to .sandbox/e2e.log.
	@cd sandbox && $(GARBAGE) go test $(VETTED) -count=1 -timeout 60m -parallel $(PARALLEL) -v ./e2e 2>&1 | \
		tee ../.sandbox/e2e.log | grep --line-buffered -E '^(--- |FAIL|ok|panic)' || \
		{ grep -E -A9 '^ *--- FAIL|_test\.go:[0-9]+:|^ *panic:' ../.sandbox/e2e.log; exit 1; }

# Both modules at once: half of the time, tests of the coordinator and of the preflight checks wait.
unit: ## Run the quick tests.
	@$(MAKE) --no-print-directory -j2 --output-sync=line unit-program unit-sandbox

unit-program:
	$(GARBAGE) go test $(VETTED) -timeout 30m ./...

unit-sandbox:
	cd sandbox && $(GARBAGE) go test $(VETTED) -timeout 30m $$(go list ./... | grep -v /e2e)

lint: ## Check formatting and workflows, and run go vet and staticcheck.
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./... && go tool staticcheck ./...
	cd sandbox && go vet ./... && go tool staticcheck ./...
	go tool actionlint

nightly: toolchain ## Run the long tests, with a random SEED. RUN chooses tests. They log to .sandbox/nightly.log.
	@{ failed=0; \
		cd sandbox && $(GARBAGE) go test $(VETTED) -count=1 -timeout 4h -parallel $(PARALLEL) -v -run '$(RUN)' ./e2e -long -seed $(or $(SEED),0) || failed=1; \
		exit $$failed; } 2>&1 | \
		tee .sandbox/nightly.log | grep --line-buffered -E '^(--- |FAIL|ok|panic)|^ +DONE' || \
		{ grep -E -A9 '^ *--- FAIL|_test\.go:[0-9]+:|^ *panic:' .sandbox/nightly.log; exit 1; }

bench: toolchain ## Benchmark up of prod and of 10 jobs against kubectl, the program alone, and the coordinator.
	go test $(VETTED) -run '^$$' -bench Program ./tests
	go test $(VETTED) -run '^$$' -bench Coordinator -benchtime 1x ./workload/persia
	cd sandbox && go test $(VETTED) -run '^$$' -bench Up -benchtime 1x -timeout 60m ./e2e

# Pulumi's language host compiles with cgo where there is a C compiler, which makes most packages others.
build: ## Compile the Pulumi program, which `pulumi preview` and `up` run.
	env -u CGO_ENABLED go build -o bin/program .
	go build -o bin/ ./cmd/persia

release: ## Compile the program for all platforms into dist/. Set VERSION, for example VERSION=v1.2.3.
	scripts/release.sh $(VERSION)

pictures: ## Render the pictures of the documentation into dist/pictures, for light and dark pages.
	@scripts/pictures.sh

recording: sandbox ## Record the tour of the sandbox as an animated picture, docs/start/sandbox.svg.
	@scripts/recording.sh

preflight: ## Check what `pulumi up` of STACK needs. OFFLINE=1 skips all network checks.
	@go build -o bin/ ./cmd/persia
	@bin/persia preflight --stack $(STACK) $(if $(OFFLINE),--offline)

toolchain: sandbox ## Compile the programs that the sandbox runs.
	@$(SANDBOX) toolchain $(ARCHIVE)

toolchain-archive: sandbox ## Compile them and the sandbox into dist/persia-toolchain.tar.gz, and record their checksums.
	@scripts/record-sandbox.sh .sandbox/archived/sandbox
	@$(SANDBOX) archive

# Installs the system packages that a real node needs. On systems other than Debian and
# Ubuntu, and for users other than root, the sandbox reports what is missing.
node-packages:
	@scripts/install-node.sh

# Installs the system packages that the quick tests need, likewise.
test-packages:
	@scripts/install-tests.sh

sandbox:
	@scripts/compile-sandbox.sh $(SANDBOX) $(if $(TOOLCHAIN),'$(TOOLCHAIN)')
