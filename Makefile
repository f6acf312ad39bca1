# SPDX-License-Identifier: Apache-2.0
#
#   make demo        build everything and move a file between two simulated NICs
#   make test        all tests
#   make help        the other targets

SHELL := /bin/bash
GO ?= $(shell command -v go || echo /usr/local/go/bin/go)
export OBJCACHE := $(shell command -v ccache)
WIDTHS := 64 512
RTL := $(wildcard hw/rtl/*/*.sv hw/rtl/*.sv hw/rtl/*.f)
# unit benches and their widths; the ICRC has a matrix for each width
BENCHES := $(foreach tb,$(sort $(notdir $(basename $(wildcard hw/tb/*_tb.sv)))),$(foreach w,$(WIDTHS),$(tb) $(w))) icrc_tb 128 icrc_tb 256
DEMO_FLAGS ?=
LAB_FLAGS ?=
# every kind of traffic, with loss and errors
CHECK_TESTS := ^Test(Core|Reads$$|LossyReads|AtomicSum|ReadResponse|Deregistered|UC|UD|SRQ|Recv|Loss|Window|Events|Reset)
# more QPs than slots, whatever they do
THRASH_TESTS := ^Test(Soak|Random|Lossy|Reads|Atomic|UC|UD|SRQ|Checklist|MoreQPs|Reset|Credits|SendQueueDrain|Window|MemoryWindow)
# goroutines that share a device, threads that share an engine
RACE_TESTS := ^Test(Core|Faults|ProbeThreads|ProbeFreeRunning|Wait|PingPong|Channel|Solicited|Moderation|AsyncEvents|Events|IRQ|Batch)

.DEFAULT_GOAL := help
.PHONY: help tools lib demo lab soak thrash check-activity race test test-go test-rtl lint lint-rtl lint-go generate check-generated bench synth-check area coverage formal formal-mutants clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

tools: ## check the tools and install what is missing
	@.ci/tools.sh build

lib: tools ## Verilator model libraries of all widths (build/lib/)
	@for w in $(WIDTHS); do verilator/build.sh $$w || exit 1; done

build/rnic: tools FORCE
	@mkdir -p build && $(GO) build -o build/rnic ./cmd/rnic
FORCE:

demo: lib build/rnic ## transfer a file between two simulated NICs (DEMO_FLAGS="--width 64 --file F")
	@build/rnic demo $(DEMO_FLAGS)

lab: lib build/rnic ## checks of congestion control, from the wire up (LAB_FLAGS="--width 64 --levels 1-5")
	@build/rnic lab $(LAB_FLAGS)

generate: tools ## regenerate everything that comes from hw/regs/ and the CRC tables
	@$(GO) run ./cmd/regmap && $(GO) run ./cmd/crcgen

check-generated: tools ## fail if a generated file is not current
	@$(GO) run ./cmd/regmap -check && $(GO) run ./cmd/crcgen -check

lint: lint-rtl lint-go ## all linters

lint-rtl: tools ## Verilator -Wall at every datapath width
	@for w in 64 128 256 512; do \
	  verilator --lint-only -Wall -f hw/rtl/rnic.f hw/rtl/rnic_core.sv --top-module rnic_core -GDataW=$$w || exit 1; \
	  echo "ok   lint rnic_core DataW=$$w"; done
	@for m in cc_rp cc_rp_units; do \
	  verilator --lint-only -Wall -Wno-UNUSEDPARAM -f hw/rtl/rnic.f hw/rtl/cc/$$m.sv --top-module $$m || exit 1; \
	  echo "ok   lint $$m"; done

lint-go: tools ## gofmt, vet, staticcheck
	@out=$$(gofmt -l cmd cosim driver examples hw tools verilator 2>/dev/null); [ -z "$$out" ] || { echo "gofmt: $$out"; exit 1; }
	@$(GO) vet ./... && $(GO) tool staticcheck ./... && echo "ok   gofmt, vet, staticcheck"

test: ## every test: generated files, lint, RTL benches, Go and co-simulation tests
	@.ci/tools.sh test
	@$(MAKE) --no-print-directory check-generated lint test-rtl lib
	@$(MAKE) --no-print-directory test-go

test-rtl: tools ## unit benches of the RTL at 64 and 512 bit, one per core at a time
	@printf '%s %s\n' $(BENCHES) | xargs -P $$(nproc) -n 2 hw/tb/run.sh

test-go: lib ## Go tests, co-simulation tests included
	@$(GO) test -count=1 -timeout 40m ./...

soak: lib ## random traffic of all services with faults against a model, for long (SOAK=operations SEED=n)
	@OPENRNIC_SOAK=$(or $(SOAK),50000) OPENRNIC_SEED=$(or $(SEED),$(shell date +%s)) $(GO) test -count=1 -timeout 0 -v -run 'TestSoak$$' ./driver/verbs

thrash: tools ## random traffic with faults on NICs with eight slots for QPs, for long (SOAK=operations SEED=n)
	@mkdir -p build/thrash
	@for w in $(WIDTHS); do verilator/build.sh $$w thrash && cp build/lib/librnic_w$${w}_thrash.so build/thrash/librnic_w$$w.so || exit 1; done
	@OPENRNIC_LIB_DIR=$(CURDIR)/build/thrash OPENRNIC_SOAK=$(or $(SOAK),50000) OPENRNIC_SEED=$(or $(SEED),$(shell date +%s)) \
	  $(GO) test -count=1 -timeout 0 -v -run '$(THRASH_TESTS)' ./driver/verbs

check-activity: tools ## Go tests on models that stop where verilator/activity.pl left out a change
	@mkdir -p build/check
	@for w in $(WIDTHS); do verilator/build.sh $$w check && cp build/lib/librnic_w$${w}_check.so build/check/librnic_w$$w.so || exit 1; done
	@OPENRNIC_LIB_DIR=$(CURDIR)/build/check $(GO) test -count=1 -timeout 120m -run '$(CHECK_TESTS)' ./cosim ./driver/verbs

race: lib ## Go tests of what runs in several goroutines, under the race detector
	@$(GO) test -race -count=1 -timeout 120m -run '$(RACE_TESTS)' ./cosim/... ./driver/verbs

bench: lib build/rnic ## performance table, build/bench.json and build/bench-qps.svg
	@verilator/build.sh 512 slots1k
	@build/rnic bench --json build/bench.json --plot build/bench-qps.svg

synth-check: ## elaborate the RTL in Yosys with the slang front end, both widths
	@.ci/tools.sh synth
	@hw/synth/check.sh

area: ## LUTs, flip-flops, memories and logic depth by module, in Yosys (AREA=-update writes docs/area.md, -check only what changed)
	@.ci/tools.sh synth
	@$(GO) run ./cmd/area $(AREA)

coverage: tools ## lines and branches that the unit benches run, by file, 95 % of lines at least (COVERAGE=toggle: signals as well; DOC=docs/coverage.md)
	@printf '%s %s\n' $(BENCHES) | COVERAGE=$(or $(COVERAGE),1) xargs -P $$(nproc) -n 2 hw/tb/run.sh
	@$(GO) run ./cmd/coverage -v -min 95 $(if $(DOC),-doc $(DOC))

formal: ## prove what hw/formal/table.go lists (docs/formal.md)
	@.ci/tools.sh formal
	@$(GO) run ./hw/formal

formal-mutants: ## plant a defect at a time: every proof must find its own
	@.ci/tools.sh formal
	@$(GO) run ./hw/formal -mutants

clean: ## remove build/
	rm -rf build
