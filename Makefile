# Packages that are tested at the same time. Each starts services of its own.
AT_ONCE ?= 2
# Docker Compose v2: Docker's own, otherwise the one that tests/setup builds.
COMPOSE ?= $(if $(shell docker compose version 2>/dev/null),docker compose,.bin/compose) -f docker-compose.temporal.yml

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check lint fix chaos bench up down setup

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Start a private installation and run real jobs through it
	@tests/setup services
	go run ./tests/demo

test: ## Install or build what is missing, lint, and run all tests with the race detector
	@tests/setup services race compose lint
	@$(MAKE) --no-print-directory lint
	go test -race -timeout 15m -p $(AT_ONCE) ./...

check: ## Vet, lint and run the short tests with what is installed
	go vet ./...
	@$(MAKE) --no-print-directory lint
	go test -short -timeout 5m -p $(AT_ONCE) ./...

lint: ## Run the linters, and workflowcheck on the workflows
	@tests/setup lint
	.bin/golangci-lint run ./...
	.bin/workflowcheck -config workflows/workflowcheck.yaml ./workflows/...

fix: ## Format, and repair what the linters can repair
	@tests/setup lint
	.bin/golangci-lint fmt ./...
	.bin/golangci-lint run --fix ./...

chaos: ## Break an installation at random: make chaos SEED=1 RUNS=10
	@tests/setup services race
	SEED=$(or $(SEED),1) RUNS=$(or $(RUNS),1) go test -tags chaos -count=1 -timeout 24h -v ./tests/chaos

bench: ## Measure
	@tests/setup services
	go run ./tests/bench

up: ## Start PostgreSQL, Temporal, two runtime nodes and a worker with Docker Compose
	@tests/setup compose
	$(COMPOSE) up --build --detach --wait

down: ## Stop them; their data stays
	$(COMPOSE) down

setup: ## Install or build what the tests need, and nothing else
	@tests/setup services race compose lint
