# pointsman: build, try and test. `make help` lists the targets.

CARGO ?= cargo
# What is built is looked for in target/debug and target/release, wherever else the caller builds.
unexport CARGO_TARGET_DIR CARGO_BUILD_TARGET
# Each flavour has a target directory of its own, so that neither overwrites the other.
SIM_DIR := target/sim
SIM_FLAGS := --features test-rds-bgd --target-dir $(SIM_DIR)
SIM_DAEMON := $(SIM_DIR)/debug/pointsman
ALL_DIR := target/testall
GROUP ?= cluster_sim_rds_bgd-g1
REPEAT ?= 1
KILLS ?= 1000
STRESS_SECONDS ?= 60

.DEFAULT_GOAL := build
.PHONY: help prerequisites build release run demo test test-unit test-sim test-sim-stress check-production \
	build_deps_debug build_lib_test_rds_bgd build_src_test_rds_bgd test_rds_bgd testall tap-group bench bench-narrow bench-monitor bench-locality bench-memory conformance conformance-random test-admin test-kill clean

help:
	@echo 'build         the daemon, debug build            release       the production binary'
	@echo 'prerequisites whether what a build needs is installed'
	@echo 'run           daemon + embedded database, foreground'
	@echo 'demo          one switchover under live traffic, narrated'
	@echo 'test          every test: test-unit, test-sim, check-production and tap-group'
	@echo 'test-unit     the tests of the workspace, production flavour'
	@echo 'test-sim      what the simulator flavour contains more'
	@echo 'check-production  that the production binary contains no simulator'
	@echo 'test_rds_bgd  the simulator flavour and the TAP binaries (builds only), into $(SIM_DIR)'
	@echo 'testall       every simulator in one daemon, and the TAP binaries (builds only), into $(ALL_DIR)'
	@echo 'tap-group     run the TAP group (REPEAT=10 to repeat it)'
	@echo 'bench         cost per statement and connection beside its peers (20 minutes)'
	@echo 'bench-narrow  32 clients with transactions over 8 server connections (5 minutes)'
	@echo 'bench-monitor 200 deployments on one daemon: CPU, growth, time to react (18 minutes)'
	@echo 'bench-locality near servers first while the map of places is slow, gone and back (4 minutes; LOCALITY=--quick: 20 seconds)'
	@echo 'conformance   the same checks with and without pointsman, seven clients, real servers'
	@echo 'conformance-random  random sessions with and without pointsman, real servers (RANDOM_SESSIONS='\''--minutes 30 --seed 7'\'')'
	@echo 'test-admin    the admin port with command-line clients, drivers and operators'\'' tools'
	@echo 'test-sim-stress  20 probers of the simulator beside 200 transactions a second, for a minute'
	@echo 'test-kill     kill -9 a thousand times while configuration is saved (KILLS=1000)'
	@echo 'bench-memory  resident memory of 2,000 idle connections'
	@echo 'clean         remove everything built'

prerequisites:
	@sh lab/check-prerequisites.sh

build: prerequisites
	$(CARGO) build --workspace --locked

release: prerequisites
	$(CARGO) build --release --locked --package pointsman

run: build
	@target/debug/run-local --daemon target/debug/pointsman

demo: test_rds_bgd
	@$(SIM_DIR)/debug/demo --daemon $(SIM_DAEMON)

test: prerequisites test-unit test-sim check-production tap-group

test-unit:
	$(CARGO) test --workspace --locked

# What the simulator flavour contains more, or otherwise, than the production flavour.
test-sim:
	$(CARGO) test --locked $(SIM_FLAGS) --package sqlite-server --package pointsman --lib --test sessions --test simulator \
		--test simulator_stress --test simulator_client --test traffic

# STRESS_SECONDS=600 for longer.
test-sim-stress:
	POINTSMAN_STRESS_SECONDS=$(STRESS_SECONDS) $(CARGO) test --locked $(SIM_FLAGS) --package sqlite-server --test simulator_stress -- --nocapture

check-production: release
	sh lab/check-production.sh target/release/pointsman

tap-group: test_rds_bgd
	$(SIM_DIR)/debug/tap-runner --daemon $(SIM_DAEMON) --group $(GROUP) --repeat $(REPEAT)

# Contract: Build Integration. These build and run nothing. Libraries of others need no step of their own: cargo builds them with
# what uses them.
build_deps_debug: prerequisites

build_lib_test_rds_bgd: build_deps_debug
	$(CARGO) build --locked $(SIM_FLAGS) --lib

build_src_test_rds_bgd: build_lib_test_rds_bgd
	$(CARGO) build --locked $(SIM_FLAGS) --package pointsman

test_rds_bgd: build_src_test_rds_bgd
	$(CARGO) build --locked $(SIM_FLAGS) --package pointsman --example connection_unhealthy_unit-t
	$(CARGO) build --locked --target-dir $(SIM_DIR) --package tap --bins

# For all groups whose name begins with cluster_sim_.
testall: build_deps_debug
	$(CARGO) build --locked --all-features --target-dir $(ALL_DIR) --workspace --bins --example connection_unhealthy_unit-t

# BENCH='--rounds 3 --only text' for a quick look.
bench: release
	$(CARGO) build --release --locked --example relay
	@lab/bench/install.sh
	lab/bench/bench.py --pointsman target/release/pointsman --relay target/release/examples/relay $(BENCH)

# NARROW='--seconds 5 --server mariadb' for a quick look. Exit status 77: servers cannot be had here.
bench-narrow: release
	@lab/bench/install.sh
	lab/bench/narrow.py --pointsman target/release/pointsman $(NARROW)

# MONITOR='--deployments 3 --quick' for a quick look.
bench-monitor: prerequisites
	$(CARGO) build --release --locked $(SIM_FLAGS) --package pointsman
	lab/bench/monitor.py --pointsman $(SIM_DIR)/release/pointsman $(MONITOR)

# LOCALITY=--quick for a quick look. It fails where a statement fails or a share is off.
bench-locality: release
	lab/bench/locality.py --pointsman target/release/pointsman $(LOCALITY)

# Exit status 77: servers or clients cannot be had here.
conformance: prerequisites
	$(CARGO) build --workspace --locked --bin pointsman --example conformance
	@lab/conformance/run.py

# Exit status 77: servers cannot be had here.
conformance-random: prerequisites
	$(CARGO) build --locked --package pointsman
	@lab/conformance/random_sessions.py $(RANDOM_SESSIONS)

test-kill: prerequisites
	POINTSMAN_KILL_ROUNDS=$(KILLS) $(CARGO) test --locked --package pointsman --test kill -- --nocapture

# Exit status 77: clients cannot be had here.
test-admin: prerequisites
	$(CARGO) build --locked --package pointsman
	@lab/admin/run.py

bench-memory: prerequisites
	$(CARGO) bench --locked --bench idle_memory

clean:
	$(CARGO) clean
