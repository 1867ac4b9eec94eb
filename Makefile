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

NIGHTLY := $(TEST) -count=1 -timeout 4h -parallel $(PARALLEL) -v

# What linters and workflows are checked with, in an environment of its own.
LINTERS := .sandbox/linters

# Everything is compiled alike, so that the compiler sees each package once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help up train preview comment status kubeconfig down preflight build test e2e processes stacks \
	rehearse nightly lint verify bench toolchain toolchain-archive release recording node-packages sandbox

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: sandbox ## Create or update STACK in the sandbox.
	@$(SANDBOX) up --stack '$(STACK)' --stacks '$(STACKS)' $(ARCHIVE)

train: STACK = train
train: STACKS = examples
train: sandbox node-packages ## Train examples/Pulumi.train.yaml with PERSIA itself on a real node.
	@$(SANDBOX) train --stack '$(STACK)' --stacks '$(STACKS)' $(ARCHIVE)

preview: sandbox ## Show what `make up` would do, with each value if DIFF=1.
	@go build -o .sandbox/persia ./cmd/persia && .sandbox/persia preview --stack '$(STACK)' $(if $(DIFF),--diff) -- $(SANDBOX) preview --stack '$(STACK)' --stacks '$(STACKS)' $(ARCHIVE)

BASE ?= origin/main
rehearse: sandbox ## Bring STACK up as BASE has it, then as it is here, and compare the preview with what happens.
	@STACK='$(STACK)' STACKS='$(STACKS)' BASE='$(BASE)' PROGRAM='$(PROGRAM)' scripts/rehearse.sh $(SANDBOX) $(if $(DESTROY),--destroy) $(if $(MARKDOWN),--markdown) $(ARCHIVE)

comment: sandbox ## Print the preview as a pull request comment.
	@go run ./cmd/persia comment --stack '$(STACK)' -- $(SANDBOX) preview --stack '$(STACK)' --stacks '$(STACKS)'

status: sandbox ## Show the nodes, pods, jobs, and cost of STACK, with WATCH=1 again and again.
	@$(SANDBOX) status --stack '$(STACK)' --stacks '$(STACKS)' $(if $(WATCH),--watch)

kubeconfig: sandbox ## Print the path of the kubeconfig of STACK.
	@$(SANDBOX) kubeconfig --stack '$(STACK)' --stacks '$(STACKS)'

down: sandbox ## Destroy STACK and stop everything that `make up` started.
	@$(SANDBOX) down --stack '$(STACK)' --stacks '$(STACKS)'

preflight: ## Check what `pulumi up` of STACK needs.
	@go build -o bin/ ./cmd/persia
	@bin/persia preflight --stack '$(STACK)'

# Pulumi's language host compiles with cgo where there is a C compiler, which makes most packages others.
build: ## Compile the Pulumi program, which `pulumi preview` and `up` run.
	env -u CGO_ENABLED go build -o bin/program .
	go build -o bin/ ./cmd/persia

test: ## Run the program's quick tests, which install nothing.
	$(TEST) -short -timeout 10m ./workload/persia/python_test ./...

e2e: toolchain node-packages ## Run the tests of processes and whole stacks, with .sandbox/e2e.log.
	@$(MAKE) --no-print-directory stacks
	@$(MAKE) --no-print-directory processes

processes:
	HISTORIES=30 $(TEST) -timeout 30m $$(git grep -l 'testkit[.]Processes(\|testing[.]Short()' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's#^#./#')
	cd sandbox && $(TEST) -timeout 30m $$(go list ./... | grep -v /e2e)

stacks:
	@cd sandbox && $(TEST) -count=1 -timeout 45m -parallel $(PARALLEL) -v ./e2e 2>&1 | \
		tee ../.sandbox/e2e.log | grep --line-buffered -E '^(--- |FAIL|ok|panic)' || \
		{ grep -E -A9 '^ *--- FAIL|_test\.go:[0-9]+:|^ *panic:' ../.sandbox/e2e.log; exit 1; }

nightly: toolchain ## Run the long tests, or only RUN, with SEED, and stacks on the next Kubernetes.
	@cd sandbox && { (cd .. && QUIET=50 HISTORIES=50000 SEED=$(SEED) $(NIGHTLY) -run '$(or $(RUN),^Test(Alerts|Python|SlowMachines)$$)' ./workload/persia/...) && \
		$(NIGHTLY) -run '$(RUN)' ./e2e -long -seed $(or $(SEED),0) && \
		SANDBOX_KUBERNETES=next $(NIGHTLY) -run '$(or $(RUN),^Test(Dev|Queue)$$)' ./e2e && \
		SANDBOX_KUBERNETES_PROVIDER=official $(NIGHTLY) -run '$(or $(RUN),^Test(Dev|Prod|Queue|Storage|Edits)$$)' \
			-skip '^TestDev$$/^(comments|drift)$$' ./e2e; } 2>&1 | \
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
	cd workload/persia && ../../$(LINTERS)/bin/mypy --config-file strict.ini machine.py events.py ledger.py roster.py speed.py

$(LINTERS): scripts/linters.txt
	python3 -m venv $@ && $@/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

verify: ## Generate all files again, and fail if git sees a difference.
	go mod tidy && cd sandbox && go mod tidy
	for module in jobset kueue; do go -C sandbox/toolchain/$$module mod download sigs.k8s.io/$$module || exit 1; done
	go generate ./...
	$(TEST) ./internal/reference -update
	$(TEST) ./tests ./workload/pedl -update
	git diff --exit-code

bench: toolchain ## Benchmark up against kubectl, and the program.
	go test -vet=off -run '^$$' -bench Program ./tests
	cd sandbox && go test -vet=off -run '^$$' -bench Up -benchtime 1x -timeout 60m ./e2e

toolchain: sandbox ## Compile the programs that the sandbox runs.
	@$(SANDBOX) toolchain $(ARCHIVE)

toolchain-archive: sandbox ## Pack them and the sandbox into dist/, and record their checksums.
	@scripts/record-sandbox.sh .sandbox/archived/sandbox
	@$(SANDBOX) archive

release: ## Compile the program for all platforms into dist/, as VERSION=v1.2.3.
	scripts/release.sh $(VERSION)

recording: sandbox ## Record the tour of the sandbox, docs/start/sandbox.svg.
	@scripts/recording.sh

# Installs the system packages that a real node needs. On systems other than Debian and
# Ubuntu, and for users other than root, the sandbox reports what is missing.
node-packages:
	@scripts/install-node.sh

sandbox:
	@scripts/compile-sandbox.sh $(SANDBOX) $(if $(TOOLCHAIN),'$(TOOLCHAIN)')
