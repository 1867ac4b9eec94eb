# Run `make` without arguments to list the targets. STACK selects the stack: dev (the
# default), prod, or, with STACKS=examples, one in examples/.
STACK ?= dev
STACKS ?= .

SANDBOX := .sandbox/bin/sandbox

# A file or a URL with compiled programs of the sandbox: by default, the file of a release, if it is
# next to the clone.
TOOLCHAIN ?= $(wildcard ../persia-toolchain.tar.gz)
ARCHIVE = $(if $(TOOLCHAIN),--archive '$(TOOLCHAIN)')

# How many end-to-end tests run in parallel: most wait for pods and controllers, so more than there are
# cores.
PARALLEL ?= 4

# `make lint` runs go vet with all of its checks, over the tests too. Tests make much garbage: with
# Go's default, those of sandbox/gcp spend a third of their time on it.
TEST := GOGC=400 go test -vet=off

# What linters and workflows are checked with, in an environment of its own.
LINTERS := .sandbox/linters

# Everything is compiled alike, so that the compiler sees each package once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help up train preview comment down status kubeconfig test e2e processes stacks nightly lint verify bench build preflight release recording sandbox toolchain toolchain-archive node-packages

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: sandbox ## Create or update STACK in the sandbox.
	@$(SANDBOX) up --stack '$(STACK)' --stacks '$(STACKS)' $(ARCHIVE)

train: STACK = train
train: STACKS = examples
train: sandbox node-packages ## Train examples/Pulumi.train.yaml with PERSIA's own processes on a real node.
	@$(SANDBOX) train --stack '$(STACK)' --stacks '$(STACKS)' $(ARCHIVE)

preview: sandbox ## Show what `make up` would do.
	@$(SANDBOX) preview --stack '$(STACK)' --stacks '$(STACKS)' $(ARCHIVE)

comment: sandbox ## Print the preview as a pull request comment.
	@go run ./cmd/persia comment --stack '$(STACK)' -- $(SANDBOX) preview --json --stack '$(STACK)' --stacks '$(STACKS)'

down: sandbox ## Destroy STACK and stop everything that `make up` started.
	@$(SANDBOX) down --stack '$(STACK)' --stacks '$(STACKS)'

status: sandbox ## Show the nodes, pods, and endpoints of STACK.
	@$(SANDBOX) status --stack '$(STACK)' --stacks '$(STACKS)'

kubeconfig: sandbox ## Print the path of the kubeconfig of STACK.
	@$(SANDBOX) kubeconfig --stack '$(STACK)' --stacks '$(STACKS)'

test: ## Run the quick tests of the program. Nothing is installed, and no test waits for processes.
	$(TEST) -short -timeout 10m ./...

e2e: toolchain node-packages ## Run the tests of processes, of the sandbox, and of whole stacks, which log to .sandbox/e2e.log.
	@$(MAKE) --no-print-directory stacks
	@$(MAKE) --no-print-directory processes

processes:
	$(TEST) -timeout 30m $$(git grep -l 'testkit[.]Processes(' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's#^#./#')
	cd sandbox && $(TEST) -timeout 30m $$(go list ./... | grep -v /e2e)

stacks:
	@cd sandbox && $(TEST) -count=1 -timeout 45m -parallel $(PARALLEL) -v ./e2e 2>&1 | \
		tee ../.sandbox/e2e.log | grep --line-buffered -E '^(--- |FAIL|ok|panic)' || \
		{ grep -E -A9 '^ *--- FAIL|_test\.go:[0-9]+:|^ *panic:' ../.sandbox/e2e.log; exit 1; }

nightly: toolchain ## Run the long forms of the tests of whole stacks, with a random SEED. RUN chooses tests. They log to .sandbox/nightly.log.
	@cd sandbox && $(TEST) -count=1 -timeout 4h -parallel $(PARALLEL) -v -run '$(RUN)' ./e2e -long -seed $(or $(SEED),0) 2>&1 | \
		tee ../.sandbox/nightly.log | grep --line-buffered -E '^(--- |FAIL|ok|panic)|^ +DONE' || \
		{ grep -E -A9 '^ *--- FAIL|_test\.go:[0-9]+:|^ *panic:' ../.sandbox/nightly.log; exit 1; }

lint: $(LINTERS) ## Check formatting, Go, Python, and workflows.
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./... && go tool staticcheck ./...
	cd sandbox && go vet ./... && go tool staticcheck ./...
	go tool actionlint
	$(LINTERS)/bin/zizmor --quiet --offline --min-severity medium .github
	$(LINTERS)/bin/ruff check
	$(LINTERS)/bin/mypy workload/persia/*.py workload/queue/provisioner.py

$(LINTERS): scripts/linters.txt
	python3 -m venv $@ && $@/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

verify: ## Write all generated files again, and fail if git then sees a difference.
	go mod tidy && cd sandbox && go mod tidy
	for module in jobset kueue; do go -C sandbox/toolchain/$$module mod download sigs.k8s.io/$$module || exit 1; done
	go generate ./...
	go run ./internal/reference/cmd
	$(TEST) ./tests ./workload/nats ./workload/pedl -update
	git diff --exit-code

bench: toolchain ## Benchmark up of prod and of 10 jobs against kubectl, the program alone, and the coordinator.
	go test -vet=off -run '^$$' -bench Program ./tests
	go test -vet=off -run '^$$' -bench Coordinator -benchtime 1x ./workload/persia
	cd sandbox && go test -vet=off -run '^$$' -bench Up -benchtime 1x -timeout 60m ./e2e

# Pulumi's language host compiles with cgo where there is a C compiler, which makes most packages others.
build: ## Compile the Pulumi program, which `pulumi preview` and `up` run.
	env -u CGO_ENABLED go build -o bin/program .
	go build -o bin/ ./cmd/persia

release: ## Compile the program for all platforms into dist/. Set VERSION, for example VERSION=v1.2.3.
	scripts/release.sh $(VERSION)

recording: sandbox ## Record the tour of the sandbox as an animated picture, docs/start/sandbox.svg.
	@scripts/recording.sh

preflight: ## Check what `pulumi up` of STACK needs. OFFLINE=1 skips all network checks.
	@go build -o bin/ ./cmd/persia
	@bin/persia preflight --stack '$(STACK)' $(if $(OFFLINE),--offline)

toolchain: sandbox ## Compile the programs that the sandbox runs.
	@$(SANDBOX) toolchain $(ARCHIVE)

toolchain-archive: sandbox ## Compile them and the sandbox into dist/persia-toolchain.tar.gz, and record their checksums.
	@scripts/record-sandbox.sh .sandbox/archived/sandbox
	@$(SANDBOX) archive

# Installs the system packages that a real node needs. On systems other than Debian and
# Ubuntu, and for users other than root, the sandbox reports what is missing.
node-packages:
	@scripts/install-node.sh

sandbox:
	@scripts/compile-sandbox.sh $(SANDBOX) $(if $(TOOLCHAIN),'$(TOOLCHAIN)')
