# SPDX-License-Identifier: PostgreSQL
# make              build everything; what is missing is named, not installed
# make bootstrap    install what building and testing need: on Debian 12, as root
# make demo         a throw-away server, a load, the live view
# make check        before each commit: format, unit tests, stepper, fixtures, one server test; 3 minutes when built
# make test         all tests with PostgreSQL 15, the core with 16 to 19; deterministic, 15 minutes when built
# make verify       what needs statistics, time or other machines: costs, shares, attacks, every server; hours
# make lint         format and lints alone
# make test-matrix  the core tests with PostgreSQL 16 to 19 alone; script/servers fetches them into build/servers
# make test-all     every test with every server, PostgreSQL's own tests on three, packages and images; hours
# make generate     after a change of format/*.toml: the definitions and tables that follow from them
# make agent        the Java agent, where Maven and a JDK are installed
# make installcheck tests the installed extension in the running server that PGHOST and PGPORT say, as PostgreSQL's own are
# make docs         the documentation as a site with search, into build/docs; a dead link fails
# make install      as root; PREFIX (/usr/local) and DESTDIR say where to
# make deb          Debian packages, into build/deb; make test-packages installs and uses them in a fresh Debian 12 and 13
# make test-cgroup2                     tests limits of devices by cgroup v2, in a virtual machine; as root
# make test-containers                  builds the images of packaging/ and uses what is in them; as root
# make check-server, check-statements   PostgreSQL's own tests with pg_tally loaded; SERVER=17 selects a server
# make instructions                     what a transaction executes, by callgrind; minutes
# make attack, stress                   half an hour each
# make studies, bench, bench-java       measurements
# make clean
#
# PG_CONFIG selects the server that the extension is built for. Only `make install` needs root. COPT has further options for C's
# compiler, as in PostgreSQL; with -Werror among them, warnings of C and Java are errors (.ci/run).

CARGO ?= $(firstword $(wildcard $(HOME)/.cargo/bin/cargo) cargo)
PG_CONFIG ?= pg_config
PREFIX ?= /usr/local
DESTDIR ?=

# cargo's own variable says where it builds.
TALLY = $(or $(CARGO_TARGET_DIR),target)/release/tally
EXTENSION = $(MAKE) -C pg_tally with_llvm=no PG_CONFIG=$(PG_CONFIG)
LIBTALLY = $(MAKE) -C libtally
LIBPQ = $(MAKE) -s -C client/libpq
# Every test of Rust is built by a command for the whole workspace or for the crate tally: these give each library the same
# features, others (--exclude tally, -p view) build libraries a second time. The checks of a debug build, at some optimisation.
TEST = $(CARGO) test --locked --workspace
# The tests with servers are one program; its arguments are modules (crates/tally/tests/server/) or names of tests. They wait
# for processes and disks most of their time: four at a time on each CPU keep it busy.
SERVER_THREADS ?= $(shell echo $$((4 * $$(nproc))))
SERVER_TEST = RUST_TEST_THREADS=$(SERVER_THREADS) $(CARGO) test --locked -p tally --test server --
# What `make test` runs, the shortest first. All parts run, whichever fails.
TEST_PARTS = test-c test-web test-unit test-installcheck test-instructions test-server test-matrix
# Tests of docs/security.md: the segment, and what a local user, a role or a client can reach. The number of
# rounds on the segment is PGTALLY_ATTACK_ROUNDS.
ATTACKS = $(addsuffix ::,attack_segment attack_limits crash settings extension foreign unseen serve)
# The page of reports, built into the command.
PAGE = build/web/report.html
AGENT = client/java/target/pgtally-agent.jar
# Tests start the same server that the extension is built for; scripts use the same cargo. Node.js may be that of script/node.
export PG_CONFIG CARGO
export PATH := $(PATH):$(CURDIR)/build/node/bin

all: build

# What is missing is named. Only bootstrap, demo and test have it installed (as root, on Debian).
BOOTSTRAP = script/bootstrap --check
bootstrap demo test: BOOTSTRAP = script/bootstrap

# Looks again, even if nothing was missing before.
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

# The command and the library for clients, for packages: they have the extension for several servers. For the crate tally alone,
# since crates of tests give libraries other features (faulty: rustix by libc).
build-command: build/bootstrapped $(PAGE)
	$(CARGO) build --release --locked -p tally
	+$(LIBPQ)

# Packages' install scripts do not run: none of these packages needs one.
web/node_modules/.package-lock.json: web/package-lock.json | build/bootstrapped
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(PAGE): $(shell find web/src -type f) web/build.mjs web/node_modules/.package-lock.json
	cd web && node build.mjs

# Once it was built, Maven needs no network.
$(AGENT): client/java/pom.xml $(shell find client/java/src -type f)
	cd client/java && mvn -q -B $(if $(filter -Werror,$(COPT)),-Dmaven.compiler.failOnWarning=true) package

agent:
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then $(MAKE) --no-print-directory $(AGENT); \
	else echo "no Maven or no JDK: the Java agent and its tests are left out" >&2; fi

# Figures soon: the command without what the demo does not show (crates/tally/Cargo.toml), hardly optimised; no page, so the
# report has no charts. One processor compiles the extension while the other begins with the command.
demo: build/bootstrapped-demo
	@$(MAKE) --no-print-directory -j2 demo-extension demo-command
	$(or $(CARGO_TARGET_DIR),target)/demo/tally demo

demo-extension:
	+@$(EXTENSION) -s

# Without make's job server, which has two places, cargo uses all processors.
demo-command:
	env -u MAKEFLAGS $(CARGO) build --locked --profile demo -p tally --bin tally --no-default-features

# Before each commit; the lints proper (make lint) need minutes after a change.
check: build-extension $(PAGE) build/bootstrapped-tests
	script/lint --format
	prove -Q script/*.t
	+$(LIBTALLY) test-plain
	+$(MAKE) -C pg_tally/test PG_CONFIG=$(PG_CONFIG)
	cd web && node --test test/palette.test.mjs test/points.test.mjs test/units.test.mjs
	$(TEST) --quiet --lib --bins $(addprefix --test ,$(CHECKED))
	$(SERVER_TEST) status::

# The other programs of tests that `make check` runs.
CHECKED = golden $(notdir $(wildcard crates/segment/tests/stepper))

# Cargo builds the command that is tested with the tests. A test that needs statistics, or luck, belongs to `make verify`.
test: test-build
	+@script/parts $(TEST_PARTS)

test-build: build-extension $(PAGE) build/bootstrapped-tests agent
	+$(LIBPQ)
	+$(LIBPQ) programs
	$(TEST) --no-run

test-c:
	+$(LIBTALLY) test
	+$(MAKE) -C pg_tally/test PG_CONFIG=$(PG_CONFIG)

test-web:
	cd web && npm test

test-unit:
	prove -Q script/*.t
	$(TEST) --no-fail-fast --lib --bins

# In a copy of the server's installation.
test-installcheck:
	script/installcheck

test-instructions:
	prove -Q bench/instructions.t
	script/instructions --check

# All programs of tests: those of the libraries are over in a minute.
test-server:
	RUST_TEST_THREADS=$(SERVER_THREADS) $(TEST) --no-fail-fast --test '*'

# What is stated with a probability or needs hours. A run that was interrupted resumes; the table comes last.
verify: build build/bootstrapped-tests
	script/verify

# Other servers: script/servers --list. One that cannot be had is reported and left out, unless PGTALLY_SERVERS_REQUIRED=1.
test-matrix: build-extension $(PAGE) build/bootstrapped-tests
	SERVER_THREADS=$(SERVER_THREADS) script/test-matrix

test-all: build build/bootstrapped-tests
	script/test-matrix --all
	script/azurite && $(CARGO) test --locked -p ship --test az
	set -e; for name in 15 17 18; do script/check-server $$name; script/check-statements $$name; done
	+$(MAKE) test-packages test-containers test-cgroup2

# The extension's SQL and TAP tests with the server that runs, in which it is installed.
installcheck:
	+$(EXTENSION) installcheck

# PostgreSQL's own tests, without and with the extension; about ten minutes.
check-server: build
	script/check-server $(SERVER)

# The test of contrib/pg_stat_statements against tally.statements; seconds.
check-statements: build
	script/check-statements $(SERVER)

# Instructions a transaction, without and with pg_tally and its peers. `make test` compares ours with
# bench/instructions.baseline; after an intended change: script/instructions --write
instructions: build build/bootstrapped-tests
	@$(BOOTSTRAP) --studies
	script/instructions

# Packages for this Debian: the command, libtally-dev, and the extension for each server whose headers are installed.
deb: $(PAGE)
	@$(BOOTSTRAP) --packages
	script/deb

# Status 3: it cannot be tested here, which the script says.
test-packages: deb
	script/test-packages || [ $$? = 3 ]
	{ script/deb trixie && script/test-packages trixie; } || [ $$? = 3 ]

test-cgroup2: build-command
	script/test-cgroup2 || [ $$? = 3 ]

test-containers: deb
	script/test-containers || [ $$? = 3 ]

# Attacks on a live server, with 1,000 rounds of random bytes; about 30 minutes. `make test` runs 20 rounds.
attack: build build/bootstrapped-tests
	PGTALLY_ATTACK_ROUNDS=$${PGTALLY_ATTACK_ROUNDS:-1000} timeout --kill-after=30 40m \
		$(SERVER_TEST) $(ATTACKS) --nocapture --test-threads=1

# Load, errors, kills and changes of level at once, for half an hour.
stress: build build/bootstrapped-tests
	PGTALLY_STRESS_CHANGES=1000 $(SERVER_TEST) stress:: --ignored --nocapture

# The quick variant of every study, into build/studies; about 45 minutes. An interrupted run resumes.
studies: build
	@$(BOOTSTRAP) --studies
	@for study in studies/*/study.toml; do \
		name=$$(basename $$(dirname $$study)); echo "== $$name"; \
		$(TALLY) study run $$name --quick -o build/studies/$$name > build/$$name.log || \
			{ cat build/$$name.log; exit 1; }; \
		sed -n '/inconclusive\|±/p' build/$$name.log; rm -f build/$$name.log; \
	done

# What a timed method of Java costs with this agent, OpenTelemetry's and Flight Recorder; JAVA is the virtual machine. Minutes.
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

# For the whole workspace, which gives the libraries the features that they have been built with.
generate:
	$(CARGO) build --quiet --locked --workspace --bin generate
	$(or $(CARGO_TARGET_DIR),target)/debug/generate

# Copies what was built; nothing is built as root.
install:
	@test -x $(TALLY) && test -e pg_tally/pg_tally.so || { \
		echo "nothing to install yet; run make first, as an ordinary user" >&2; exit 1; }
	+$(EXTENSION) install DESTDIR=$(DESTDIR)
	+$(MAKE) install-command

install-command:
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

uninstall:
	+$(EXTENSION) uninstall DESTDIR=$(DESTDIR)
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

.PHONY: all bootstrap docs build build-command build-extension demo demo-extension demo-command check test test-build $(TEST_PARTS) verify test-all check-server check-statements installcheck instructions attack stress studies bench bench-java deb test-packages test-containers test-cgroup2 lint generate install install-command uninstall clean agent
