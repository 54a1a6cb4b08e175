# Everything a developer runs. `make help` lists the targets.
.DEFAULT_GOAL := help
# Three workers share the tests by file, in the order of testpaths; most of them wait for processes.
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder
# CI runs a few failed tests once more: tools/ci_tests.py.
RUN_TESTS ?= -m pytest
PYTHON ?=
export PYTHON

READY := .venv/.setup-done
PACKAGES := clients/python/pyproject.toml $(wildcard services/*/pyproject.toml)

.PHONY: help setup up demo test executors flood fuzz hostile httpfuzz verify volume bench fix generate image lock order longlog crowd webhooks blocking ha dist conformance runnerkit clients hellos schedules rates graphs chaos soak chaosmutations trace console-soak bench-peers

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the locked dependencies (PYTHON=... chooses the interpreter)

$(READY): requirements.lock tools/setup.sh $(PACKAGES)
	@tools/setup.sh

up: setup ## run Taskyard here, with its data in .taskyard/
	@exec .venv/bin/taskyard up --data-dir .taskyard

demo: setup ## watch Taskyard work: starts it in a temporary directory and runs a few tasks
	@tools/demo.sh

test: setup ## run the tests (PYTEST_ARGS=... chooses among them)
	@.venv/bin/python $(RUN_TESTS) $(PYTEST_ARGS)

conformance: setup ## play every behaviour of the clients in every language that is installed (CONFORMANCE_ARGS=go --only wait)
	@.venv/bin/python -m tests.conformance $(CONFORMANCE_ARGS)

runnerkit: setup ## a verdict per rule of the runner link (KIT_ARGS=--runner go; --break 7; --prove for the kit itself; -- COMMAND for a runner of your own)
	@.venv/bin/python -m tests.runner_kit $(or $(KIT_ARGS),--runner ours)

clients: setup ## lint and test the clients in Go, TypeScript, Java and Rust, and follow their READMEs (minutes)
	@.venv/bin/python -m pytest -q tests/acceptance/test_go_client.py tests/clients/test_typescript.py tests/clients/heavy_java.py tests/clients/heavy_rust.py

executors: setup ## show which case each kind of execution passes, by running them
	@.venv/bin/python -m pytest tests/executors -n 2 --dist loadfile

flood: setup ## one task writes a gigabyte without a newline; runner and neighbours must not notice
	@TASKYARD_TEST_FLOOD_MB=1000 .venv/bin/python -m pytest -q tests/integration/test_runner_hostile.py services/runner/tests/test_logs.py -k flood

verify: setup ## run every check that is not a test; each failure prints its fix
	@.venv/bin/python tools/verify.py

trace: setup ## what became of each requirement of the replaced systems: totals, deviations, absences
	@.venv/bin/python tools/requirements.py --print

volume: setup ## create and list 100,000 tasks through the command line, with time and memory
	@TASKYARD_VOLUME=100000 .venv/bin/python -m pytest -q -s tests/acceptance/test_cli_many.py -k growing_memory

bench: setup ## measure the hot path on a durable PostgreSQL (BENCH_ARGS=--quick for a look)
	@.venv/bin/python -m tests.bench $(BENCH_ARGS)

bench-peers: setup ## measure River, graphile-worker, pgqueuer and others beside Taskyard (PEERS_ARGS="--only river,taskyard --rounds 8")
	@.venv/bin/python -m tests.bench.peers $(PEERS_ARGS)

order: setup ## order of the change log: 400,000 contended changes, two replicas; then again without its lock
	@.venv/bin/python -m tests.chaos.order $(ORDER_ARGS)
	@.venv/bin/python -m tests.chaos.order --changes 40000 --without-lock

longlog: setup ## follow and list a log of 1,000,000 lines (LINES=...), and see that memory stays flat
	@.venv/bin/python -m tests.chaos.long_log $(LINES)

crowd: setup ## 2,000 runners connect, idle and reconnect at once; their heartbeats stay on time
	@TASKYARD_CROWD=2000 .venv/bin/python -m pytest -q -s tests/integration/test_scheduler_crowd.py -k fault_26

webhooks: setup ## a webhook receiver is down for a minute (OUTAGE=...); all of it arrives once it is back, in order
	@TASKYARD_WEBHOOK_OUTAGE=$(or $(OUTAGE),60) .venv/bin/python -m pytest -q -s services/taskdb/tests/sweep/test_webhooks.py -k stopped_for

blocking: setup ## 100 functions that block for 30 s, each in a host of its own, delay no heartbeat
	@TASKYARD_BLOCKING=100 TASKYARD_BEATS=60 .venv/bin/python -m pytest -q services/runner/tests/test_function_hosts.py -k blocking_functions

httpfuzz: setup ## generated requests against the gateway: no server error, nothing undocumented (FUZZ_ARGS=--examples 200)
	@.venv/bin/python -m tests.fuzz.http $(FUZZ_ARGS)

ha: setup ## failover of PostgreSQL under Patroni, with a table of figures (OUTAGE=75 for the full long outage)
	@TASKYARD_HA=1 TASKYARD_HA_OUTAGE=$(or $(OUTAGE),15) .venv/bin/python -m pytest -q -s tests/ha

dist: setup ## build wheels and source distributions of all packages into dist/, twice, and check them
	@.venv/bin/python tools/dist.py $(DIST_ARGS)

fix: setup ## format Python and protos, and repair what the linter can
	@.venv/bin/ruff check --fix --quiet || echo "ruff check: edit the lines named above"
	@.venv/bin/ruff format --quiet
	@.venv/bin/buf format protos --write

generate: setup ## generate the stubs from the protos, and the pages that are made of sources
	@.venv/bin/python tools/generate.py
	@.venv/bin/python tools/state_machine.py
	@.venv/bin/python tools/schema_sql.py
	@.venv/bin/python tools/reference.py
	@.venv/bin/python tools/openapi.py
	@.venv/bin/python tools/metrics_page.py
	@.venv/bin/python tools/requirements.py

image: setup ## accept the protos as they are as the baseline for breaking changes
	@.venv/bin/buf build protos --exclude-source-info --output protos/image.binpb

lock: setup ## resolve requirements.lock anew after a change of requirements (LOCK_ARGS=--upgrade for newest)
	@.venv/bin/python tools/lock.py $(LOCK_ARGS)

fuzz: setup ## 100,000 generated calls of every public RPC and stream (FUZZ_ARGS="--seed 18 --calls 1000" repeats a run)
	@.venv/bin/python -m tests.fuzz.rpc $(FUZZ_ARGS)

hostile: setup ## a tenant misuses all it has for a minute on half a core; another one hardly notices (HOSTILE_ARGS="--seconds 10")
	@.venv/bin/python -m tests.chaos.hostile $(HOSTILE_ARGS)

hellos: setup ## 200 seeds of random hellos, heartbeats and reports against taskdb, judged by a model
	@TASKYARD_HELLO_SEEDS=200 .venv/bin/python -m pytest -q tests/chaos/test_hellos.py

schedules: setup ## 200 kills of the leader and of PostgreSQL under schedules of 1 s (SCHEDULES_ARGS="--kills 20")
	@.venv/bin/python -m tests.chaos.schedule_kills $(SCHEDULES_ARGS)

rates: setup ## starts under two limits for a minute over two replicas: no window above, 99 % used (RATES_ARGS="--count 20 --per 5")
	@.venv/bin/python -m tests.chaos.rates $(RATES_ARGS)

graphs: setup ## random graphs of 2,000 tasks with kill -9, a chain and fans of 10,000, with figures (GRAPH_ARGS="--graphs 1")
	@.venv/bin/python -m tests.chaos.graphs $(GRAPH_ARGS)

chaos: setup ## every fault case that this host can do, against real topologies under load, with the recovery table
	@TASKYARD_CHAOS=all .venv/bin/python -m pytest -q -s tests/chaos tests/chaos/heavy_database.py --timeout 900

soak: setup ## random faults under load, then the checker (MINUTES=5 SEED=1 TOPOLOGY=fleet|up|both)
	@.venv/bin/python -m tests.chaos.soak --minutes $(or $(MINUTES),5) --seed $(or $(SEED),1) --topology $(or $(TOPOLOGY),both)

console-soak: setup ## the console beside a million tasks: pages <1 s, a log of a million lines, the heap of a busy list (MINUTES=30)
	@.venv/bin/python -m tests.console.soak --minutes $(or $(MINUTES),30)

chaosmutations: setup ## put known defects back, one at a time; the fuzzer or a chaos case must find each
	@.venv/bin/python -m tests.chaos.mutations
