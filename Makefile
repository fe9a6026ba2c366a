# What people do with this repository. `make` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := target/venv
NODE := target/node
CARGO ?= cargo
# How many tests may wait at the same time; most of their time is waiting for short limits to pass.
JOBS ?= 3

# $(call timed,NAME,COMMAND): runs it and says how long it took.
timed = @start=$$SECONDS; echo "== $(1)"; $(2) && echo "== $(1): $$((SECONDS - start)) s"

.PHONY: help bench bench-sampler bench-pages bench-prometheus demo test test-env test-rust test-e2e build lint clean

help: ## list these targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: build $(VENV)/.done ## three people on a real Hub with fake cards; ONCE=1 ends by itself
	@$(VENV)/bin/python deploy/demo/demo.py $(if $(ONCE),--once)

test: ## everything: Rust tests, then end to end on a real Hub
	$(call timed,test environment,$(MAKE) --no-print-directory test-env)
	$(call timed,build,$(MAKE) --no-print-directory build)
	$(call timed,Rust tests,$(MAKE) --no-print-directory test-rust)
	$(call timed,end-to-end tests,$(MAKE) --no-print-directory test-e2e)

test-env: $(VENV)/.done $(VENV)5/.done $(VENV)-lab/.done $(NODE)/.done ## the Python and Node parts that the tests run, under target/, a browser and servers of metrics
	@bash tests/make-browser.sh
	@bash tests/make-prometheus.sh
	@bash tests/make-podman.sh
	@bash tests/make-sudo.sh

test-rust: ## unit, property and trace tests
	$(CARGO) test --workspace

test-e2e: test-env build ## a real Hub, proxy, kernels and mail server; ARGS="-k observe" for some of them
	@# Limits are seconds here: what fails while others crowd the machine is run once more alone before it counts.
	$(VENV)/bin/python -m pytest tests/e2e -n $(JOBS) --dist worksteal $(ARGS) || \
		{ test $$? = 1 && $(VENV)/bin/python -m pytest tests/e2e --last-failed --last-failed-no-failures none $(ARGS); }

bench: target/bench-venv/.done bench-sampler bench-pages bench-prometheus ## one cycle over 10 000 servers beside jupyterhub-idle-culler, the sampler, the admins' page, and a cluster; ARGS="--runs 1" for a quick look
	target/bench-venv/bin/python bench/bench.py $(ARGS)

bench-sampler: ## what watching eight cards costs, beside a bare loop of the same calls
	$(CARGO) build --release --workspace
	$(CARGO) bench --profile release --bench sampler

bench-pages: ## the admins' page with 5 000 sessions, beside a bare server of the same bytes
	$(CARGO) bench --profile release --bench pages

bench-prometheus: ## what a look at 10 000 cards in a real Prometheus costs
	@bash tests/make-prometheus.sh
	$(CARGO) bench --profile release --bench prometheus

build: ## the service and the fake NVML library
	$(CARGO) build --workspace

lint: ## format and clippy, as CI checks them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

clean: ## remove everything that was built or installed here
	rm -rf target

$(VENV)/.done: tests/requirements.txt tests/constraints.txt tests/make-venv.sh
	@bash tests/make-venv.sh $(VENV)
	@touch $@

$(VENV)-lab/.done: tests/requirements-lab.txt tests/constraints.txt tests/make-venv.sh
	@bash tests/make-venv.sh $(VENV)-lab requirements-lab.txt
	@touch $@

$(VENV)5/.done: tests/requirements-hub5.txt tests/constraints.txt tests/make-venv.sh
	@bash tests/make-venv.sh $(VENV)5 requirements-hub5.txt
	@touch $@

target/bench-venv/.done: bench/requirements.txt tests/make-venv.sh
	@bash tests/make-venv.sh target/bench-venv ../bench/requirements.txt
	@touch $@

$(NODE)/.done: tests/make-node.sh
	@bash tests/make-node.sh $(NODE)
	@touch $@
