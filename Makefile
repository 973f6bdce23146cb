# SPDX-License-Identifier: PostgreSQL
# make              build everything; missing dependencies are listed, not installed
# make bootstrap    install the build and test dependencies; on Debian 12, as root
# make demo         start a throw-away server with a load, and the live view
# make check        run before each commit: format, unit tests, stepper, fixtures, one server test; 3 minutes once built
# make test         run all tests with PostgreSQL 15, the core tests with 16 to 19; deterministic, 15 minutes once built
# make verify       check claims that need statistics, time or other machines: costs, shares, attacks, all servers; hours
# make lint         check format and lints only
# make test-matrix  run only the core tests with PostgreSQL 16 to 19, which script/servers fetches into build/servers
# make test-all     run all tests with all servers, PostgreSQL's own tests on three, test packages and images; hours
# make generate     after a change of format/*.toml or docs/figures.toml: generate what follows from them
# make agent        build the Java agent, if Maven and a JDK are installed
# make installcheck test the installed extension in the running server given by PGHOST and PGPORT
# make docs         the documentation as a site with search, into build/docs; a dead link fails
# make install      install; as root; PREFIX (/usr/local) and DESTDIR say where
# make deb          build Debian packages into build/deb; make test-packages tests them in a fresh Debian 12 and 13
# make static       build the command as one file that needs no library, into build/static; make test-static tests it, as root
# make release      source archive, bill of materials, checksums and changes of this version, into build/release
# make test-cgroup2                     test device limits by cgroup v2, in a virtual machine; as root
# make test-containers                  build the images of packaging/ and test their contents; as root
# make check-server, check-statements   run PostgreSQL's own tests with pg_tally loaded; SERVER=17 selects a server
# make instructions                     count the instructions of a transaction, with callgrind; minutes
# make attack, stress                   half an hour each
# make studies, bench, bench-java       measure
# make clean                            remove everything that was built
#
# PG_CONFIG selects the server that the extension is built for. Only `make install` needs root. COPT adds options for the C
# compiler, as in PostgreSQL; if it contains -Werror, warnings of the C and Java compilers are errors (.ci/run).

CARGO ?= $(firstword $(wildcard $(HOME)/.cargo/bin/cargo) cargo)
PG_CONFIG ?= pg_config
PREFIX ?= /usr/local
DESTDIR ?=

# CARGO_TARGET_DIR is cargo's own variable for the directory that it builds in.
TALLY = $(or $(CARGO_TARGET_DIR),target)/release/tally
EXTENSION = $(MAKE) -C pg_tally with_llvm=no PG_CONFIG=$(PG_CONFIG)
LIBTALLY = $(MAKE) -C libtally
LIBPQ = $(MAKE) -s -C client/libpq
# Rust tests are built for the whole workspace or for the crate tally: these two give each library the same features, while
# others (--exclude tally, -p view) build libraries a second time. The test profile has debug assertions and some optimisation.
TEST = $(CARGO) test --locked --workspace
# The server tests are one program; its arguments are modules (crates/tally/tests/server/) or names of tests. Most of the time
# they wait for processes and disks, so it takes four at a time to keep a CPU busy.
SERVER_THREADS ?= $(shell echo $$((4 * $$(nproc))))
SERVER_TEST = RUST_TEST_THREADS=$(SERVER_THREADS) $(CARGO) test --locked -p tally --test server --
# The parts of `make test`, shortest first. All of them run, even if one fails.
TEST_PARTS = test-docs test-c test-web test-unit test-installcheck test-instructions test-server test-matrix
# Tests of docs/security.md: attacks on the segment, and attempts by a local user, a role or a client.
# PGTALLY_ATTACK_ROUNDS is the number of rounds on the segment.
ATTACKS = $(addsuffix ::,attack_segment attack_limits crash settings extension foreign unseen serve)
# The report page, built into the command.
PAGE = build/web/report.html
AGENT = client/java/target/pgtally-agent.jar
# Tests use the server that the extension is built for, and scripts the same cargo. Node.js may come from script/node.
export PG_CONFIG CARGO
export PATH := $(PATH):$(CURDIR)/build/node/bin

all: build

# Missing dependencies are listed. Only bootstrap, demo and test install them (as root, on Debian).
BOOTSTRAP = script/bootstrap --check
bootstrap demo test: BOOTSTRAP = script/bootstrap

# Checks again, even if nothing was missing before.
bootstrap:
	$(BOOTSTRAP)
	$(BOOTSTRAP) --test
	@mkdir -p build && touch build/bootstrapped build/bootstrapped-tests

build/bootstrapped: script/bootstrap
	$(BOOTSTRAP)
	@mkdir -p build && touch $@

build/bootstrapped-demo: script/bootstrap
	$(BOOTSTRAP) --demo
	@mkdir -p build && touch $@

build/bootstrapped-tests: script/bootstrap | build/bootstrapped
	$(BOOTSTRAP) --test
	@touch $@

build: build-command build-extension

build-extension: build/bootstrapped
	+$(LIBTALLY)
	+$(EXTENSION)

# Command and client library without the extension, which packages build for several servers. Only crate tally is built, because
# test crates give libraries other features (faulty: rustix through libc).
build-command: build/bootstrapped $(PAGE)
	$(CARGO) build --release --locked -p tally
	+$(LIBPQ)

# The packages' install scripts are not run, because none of these packages needs one.
web/node_modules/.package-lock.json: web/package-lock.json | build/bootstrapped
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(PAGE): $(shell find web/src -type f) web/build.mjs web/node_modules/.package-lock.json
	cd web && node build.mjs

# After the first build, Maven needs no network.
$(AGENT): client/java/pom.xml $(shell find client/java/src -type f)
	cd client/java && mvn -q -B $(if $(filter -Werror,$(COPT)),-Dmaven.compiler.failOnWarning=true) package

agent:
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then $(MAKE) --no-print-directory $(AGENT); \
	else echo "Maven or JDK not found; skipping the Java agent and its tests" >&2; fi

# For a quick start, the command is built without the features that the demo does not show (crates/tally/Cargo.toml), with little
# optimisation, and without the report page, so reports have no charts. One CPU compiles the extension while another starts on
# the command.
demo: build/bootstrapped-demo
	@$(MAKE) --no-print-directory -j2 demo-extension demo-command
	$(or $(CARGO_TARGET_DIR),target)/demo/tally demo

demo-extension:
	+@$(EXTENSION) -s

# cargo would be limited to the two jobs of make's job server; without it, it uses all CPUs.
demo-command:
	env -u MAKEFLAGS $(CARGO) build --locked --profile demo -p tally --bin tally --no-default-features

# Run before each commit. The lints proper (make lint) take minutes after a change.
check: build-extension $(PAGE) build/bootstrapped-tests
	script/lint --format
	prove -Q script/*.t
	+$(LIBTALLY) test-plain
	+$(MAKE) -C pg_tally/test PG_CONFIG=$(PG_CONFIG)
	cd web && node --test test/palette.test.mjs test/points.test.mjs test/units.test.mjs
	$(TEST) --quiet --lib --bins $(addprefix --test ,$(CHECKED))
	$(SERVER_TEST) status::

# Further test programs that `make check` runs.
CHECKED = golden $(notdir $(wildcard crates/segment/tests/stepper))

# cargo builds the tested command together with the tests. Tests that depend on statistics or luck belong to `make verify`.
test: test-build
	+@script/parts $(TEST_PARTS)

test-build: build-extension $(PAGE) build/bootstrapped-tests agent
	+$(LIBPQ)
	+$(LIBPQ) programs
	$(TEST) --no-run

# The documentation as a site. Exit status 3 means that its tools are not available; the script says why.
test-docs:
	script/docs || [ $$? = 3 ]

test-c:
	+$(LIBTALLY) test
	+$(MAKE) -C pg_tally/test PG_CONFIG=$(PG_CONFIG)

test-web:
	cd web && npm test

test-unit:
	prove -Q script/*.t
	$(TEST) --no-fail-fast --lib --bins

# Uses a copy of the server's installation.
test-installcheck:
	script/installcheck

test-instructions:
	prove -Q bench/instructions.t
	script/instructions --check

# All test programs; those of the libraries take a minute.
test-server:
	RUST_TEST_THREADS=$(SERVER_THREADS) $(TEST) --no-fail-fast --test '*'

# Checks that are stated with a probability or take hours. An interrupted run resumes; the table is printed last.
verify: build build/bootstrapped-tests
	script/verify

# Other servers: script/servers --list. Unavailable ones are reported and skipped, unless PGTALLY_SERVERS_REQUIRED=1.
test-matrix: build-extension $(PAGE) build/bootstrapped-tests
	SERVER_THREADS=$(SERVER_THREADS) script/test-matrix

test-all: build build/bootstrapped-tests
	script/test-matrix --all
	script/azurite && $(CARGO) test --locked -p ship --test az
	set -e; for name in 15 17 18; do script/check-server $$name; script/check-statements $$name; done
	+$(MAKE) test-packages test-containers test-cgroup2 test-static
	set -e; for check in 'rpm --command $(TALLY)' pgxn test-musl test-pg-upgrade test-clusters manifests; do \
		script/$$check || [ $$? = 3 ]; done

# The extension's SQL and TAP tests with the running server, into which it is installed.
installcheck:
	+$(EXTENSION) installcheck

# PostgreSQL's own tests, without and with the extension; about ten minutes.
check-server: build
	script/check-server $(SERVER)

# The regression tests of contrib/pg_stat_statements against tally.statements; seconds.
check-statements: build
	script/check-statements $(SERVER)

# Instructions per transaction, without and with pg_tally and its peers. `make test` compares pg_tally's with
# bench/instructions.baseline; after an intended change, run script/instructions --write.
instructions: build build/bootstrapped-tests
	@$(BOOTSTRAP) --studies
	script/instructions

# Packages for this Debian release: the command, libtally-dev, and the extension for each server whose headers are installed.
deb: $(PAGE)
	@$(BOOTSTRAP) --packages
	script/deb

# Compiles OpenSSL and all crates anew: 14 minutes of CPU time.
static: $(PAGE)
	script/static

test-static: static build-extension
	script/test-static

# Exit status 3 means that it cannot be tested here; the script says why.
test-packages: deb
	script/test-packages || [ $$? = 3 ]
	{ script/deb trixie && script/test-packages trixie; } || [ $$? = 3 ]

# The files of a release; run `make verify` before.
release:
	script/release

test-cgroup2: build-command
	script/test-cgroup2 || [ $$? = 3 ]

test-containers: deb
	script/test-containers || [ $$? = 3 ]

# Attacks on a live server, with 1,000 rounds of random bytes; about 30 minutes. `make test` runs 20 rounds.
attack: build build/bootstrapped-tests
	PGTALLY_ATTACK_ROUNDS=$${PGTALLY_ATTACK_ROUNDS:-1000} timeout --kill-after=30 40m \
		$(SERVER_TEST) $(ATTACKS) --nocapture --test-threads=1

# Load, errors, kills and level changes at the same time, for half an hour.
stress: build build/bootstrapped-tests
	PGTALLY_STRESS_CHANGES=1000 $(SERVER_TEST) stress:: --ignored --nocapture

# The quick variant of every study, into build/studies; about an hour. An interrupted run resumes. Two are of Java clients:
# they are not built in, and need the agent.
studies: build agent
	@$(BOOTSTRAP) --studies
	@for study in studies/*/study.toml; do \
		name=$$(basename $$(dirname $$study)); echo "== $$name"; \
		if [ -e studies/$$name/client ] && [ ! -e $(AGENT) ]; then echo "left out: no Java agent"; continue; fi; \
		$(TALLY) study run studies/$$name --quick -o build/studies/$$name > build/$$name.log || \
			{ cat build/$$name.log; exit 1; }; \
		sed -n '/inconclusive\|±/p' build/$$name.log; rm -f build/$$name.log; \
	done

# Cost of timing a Java method with this agent, OpenTelemetry's and Flight Recorder; JAVA is the virtual machine. Minutes.
JAVA ?= java
bench-java: $(AGENT)
	cd client/java/bench && mvn -q -B package && $(JAVA) -cp 'target/classes:target/lib/*' org.pgtally.bench.Compare \
		$(CURDIR)/$(AGENT) 5 $(CURDIR)/client/java/target/opentelemetry/*.jar

bench: build
	+$(LIBTALLY) bench
	$(TALLY) cost --workload select
	$(TALLY) cost --workload tpcb

docs:
	script/docs

lint: build-extension $(PAGE)
	cd web && npm run check
	script/lint

# Built for the whole workspace, so that the libraries have the features that they were already built with.
generate:
	$(CARGO) build --quiet --locked --workspace --bin generate
	$(or $(CARGO_TARGET_DIR),target)/debug/generate

# Copies files that are already built; nothing is built as root. Whatever root's umask is, everybody may read them.
install:
	@test -x $(TALLY) && test -e pg_tally/pg_tally.so || { \
		echo "nothing to install yet; run make first, as an ordinary user" >&2; exit 1; }
	+umask 022 && $(EXTENSION) install DESTDIR=$(DESTDIR)
	+$(MAKE) install-command

install-command:
	+@umask 022 && $(MAKE) --no-print-directory install-files

install-files:
	install -D -m 755 $(TALLY) $(DESTDIR)$(PREFIX)/bin/tally
	+$(LIBPQ) install DESTDIR=$(DESTDIR) PREFIX=$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,/usr/local,$(PREFIX),' systemd/pgtally-record@.service > \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/pgtally-record@.service
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(TALLY) man $(DESTDIR)$(PREFIX)/share/man/man1
	$(TALLY) dashboards $(DESTDIR)$(PREFIX)/share/pgtally
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(TALLY) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tally
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(TALLY) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tally
	install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(TALLY) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tally.fish

uninstall: uninstall-command
	+$(EXTENSION) uninstall DESTDIR=$(DESTDIR)

uninstall-command:
	rm -rf $(DESTDIR)$(PREFIX)/share/pgtally $(DESTDIR)$(PREFIX)/lib/pgtally
	rm -f $(DESTDIR)$(PREFIX)/bin/tally $(DESTDIR)$(PREFIX)/lib/systemd/system/pgtally-record@.service \
		$(DESTDIR)$(PREFIX)/share/man/man1/tally.1 \
		$(DESTDIR)$(PREFIX)/share/man/man1/tally-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tally \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tally \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tally.fish

clean:
	-+$(LIBTALLY) clean
	-+$(EXTENSION) clean
	+$(LIBPQ) clean
	$(CARGO) clean
	rm -rf build web/node_modules client/java/target client/java/bench/target

.PHONY: all bootstrap docs release static test-static build build-command build-extension demo demo-extension demo-command check test test-build $(TEST_PARTS) verify test-all check-server check-statements installcheck instructions attack stress studies bench bench-java deb test-packages test-containers test-cgroup2 lint generate install install-command install-files uninstall uninstall-command clean agent
