# Every target installs what it needs, prints what it does with the time it took, and can be run twice.
# Only node_modules/.bin/node runs our code; the machine's own Node.js may be older.

NODE := node_modules/.bin/node
# The lab's tools are found by root's PATH, which a shell of another kind may lack.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

DEMO ?= pods
WORKLOAD ?= containers
CLUSTERS ?= home,foreign
NODES ?= 1
ROUNDS ?= 5
BENCH ?=
JSON ?=
BEFORE ?=
SET ?=
comma := ,
MINUTES ?= 10
ATTACK ?=
ATTACK_MINUTES ?= 10
RUNS ?=
PEER_RUNS ?=
SEED ?=
RUN ?=
PLANTED ?=

.PHONY: help setup demo test test-long conformance check lab-up lab-down bench bench-churn bench-cli bench-attacks faults release image clean clean-cache

help:
	@echo 'make demo [DEMO=pods|install|peering|network|namespaces|safety|away|tether]  shows one part of the product on real clusters (lab/demo/)'
	@echo 'make test               checks, unit, integration and end-to-end tests'
	@echo 'make test-long          the same with the long variants, which it names'
	@echo "make conformance        Kubernetes' own suite, directly and through a virtual node: what differs [FOCUS=REGEXP]"
	@echo 'make check              format, lint, types, generated files, of all files'
	@echo 'make lab-up             brings clusters up [WORKLOAD=containers|kwok] [CLUSTERS=home,foreign] [NODES=1]; real ones enforce NetworkPolicies; kwok only pretends to run pods, so that Tributary does not run there'
	@echo 'make lab-down           takes them down, also after a crash; not while a program works with them'
	@echo 'make bench              each figure against its reference [BENCH=NAME,...] [ROUNDS=5] [JSON=FILE] [SET=pods=100,...] [BEFORE=FOLDER]; bench/README.md'
	@echo 'make bench-churn        memory, files and sockets while pods come and go [MINUTES=10]'
	@echo 'make bench-cli          how long commands take, and how large what people install is'
	@echo 'make bench-attacks      ten minutes of each attacker [ATTACK=NAME] [ATTACK_MINUTES=10]: size of etcd, time of own writes'
	@echo 'make faults             hundreds of runs with faults, judged by an auditor [RUNS=] [PEER_RUNS=] [SEED=] [RUN=NAME,...] [PLANTED=1]'
	@echo 'make release            dist/release: the program as one file and as an npm package, checksums, SBOM'
	@echo 'make image              builds the container image'
	@echo 'make clean              removes what was built in this folder; clean-cache what was built for the lab'

# What real clusters need.
setup:
	@tools/setup.sh all
	@$(NODE) tools/setup.ts containers

# Builds only what this demo runs.
demo:
	@tools/setup.sh all
	@npm run --silent demo -- $(DEMO)

test:
	@tools/setup.sh all-if-root
	@$(NODE) tools/test.ts

# All points at which processes are killed, more pods, more rounds (test/support/long.ts): each says what it adds.
test-long: export TRIBUTARY_TEST_LONG = 1
test-long: test

# Writes docs/conformance.md, unless FOCUS chooses some of the specs.
conformance: setup
	@$(NODE) lab/conformance/main.ts $(if $(FOCUS),--focus '$(FOCUS)')

check:
	@tools/setup.sh node
	@npm run --silent check:all

ifeq ($(WORKLOAD),kwok)
lab-up:
	@tools/setup.sh node
	@$(NODE) tools/setup.ts kwok
else
lab-up: setup
endif
	@npm run --silent lab -- up --workload $(WORKLOAD) --clusters $(CLUSTERS) --nodes $(NODES)

lab-down:
	@tools/setup.sh node
	@npm run --silent lab -- down

bench_options = --rounds='$(ROUNDS)' --bench='$(BENCH)' --json='$(JSON)' --before='$(BEFORE)' \
	$(foreach one,$(subst $(comma), ,$(SET)),--set='$(one)')

# Some of them run containers and need what tests need. What is wrong with the options is told before anything is installed for them.
bench:
	@tools/setup.sh node
	@$(NODE) bench/main.ts $(bench_options) --check
	@$(MAKE) --no-print-directory setup
	@$(NODE) tools/setup.ts kwok
	@$(NODE) bench/main.ts $(bench_options)

bench-churn:
	@tools/setup.sh node
	@$(NODE) bench/pods/churn.ts --minutes='$(MINUTES)' --check
	@$(NODE) tools/setup.ts kwok
	@$(NODE) bench/pods/churn.ts --minutes='$(MINUTES)'

bench-cli:
	@tools/setup.sh node
	@$(NODE) bench/cli.ts --rounds='$(ROUNDS)'

bench-attacks:
	@tools/setup.sh node
	@$(NODE) bench/attacks.ts --minutes='$(ATTACK_MINUTES)' $(if $(ATTACK),--attack='$(ATTACK)') --check
	@$(NODE) tools/setup.ts kwok
	@$(NODE) bench/attacks.ts --minutes='$(ATTACK_MINUTES)' $(if $(ATTACK),--attack='$(ATTACK)')

# PEER_RUNS=0 needs no root. PLANTED=1: a version with mistakes, all of which must be found.
faults: setup
	@$(NODE) faults/main.ts $(if $(RUNS),--runs $(RUNS)) $(if $(PEER_RUNS),--peer-runs $(PEER_RUNS)) \
		$(if $(SEED),--seed $(SEED)) $(if $(RUN),--run $(RUN)) $(if $(PLANTED),--planted)

release:
	@tools/setup.sh node
	@$(NODE) tools/release.ts

image:
	@tools/setup.sh node
	@tools/setup.sh packages
	@$(NODE) tools/setup.ts image

clean:
	rm -rf node_modules dist coverage

# Programs and images that the lab built; the next run builds them again, which takes minutes.
clean-cache:
	rm -rf "$${TRIBUTARY_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/tributary}"
