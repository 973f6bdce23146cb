# SPDX-License-Identifier: PostgreSQL
# make demo | build | test | check-server | check-statements | attack | stress | studies | install | bench | lint | clean
#
# PG_CONFIG says for which server the extension is built, PREFIX where `make install` puts
# the command. Nothing but `make install` needs root.

CARGO ?= $(firstword $(wildcard $(HOME)/.cargo/bin/cargo) cargo)
PG_CONFIG ?= pg_config
PREFIX ?= /usr/local
DESTDIR ?=

TALLY = target/release/tally
EXTENSION = $(MAKE) -C pg_tally with_llvm=no PG_CONFIG=$(PG_CONFIG)
LIBTALLY = $(MAKE) -C libtally
# On the segment and on what a local user, a role and a client can reach (docs/security.md); those on the
# segment take their rounds from PGTALLY_ATTACK_ROUNDS.
ATTACKS = $(addprefix --test ,attack_segment attack_room crash settings extension foreign unseen serve)
# The page of the reports, which the command carries within itself.
PAGE = build/web/report.html
# For the programs that the tests start: the same server as the extension's; for script/: the same cargo.
export PG_CONFIG CARGO

all: build

# What is missing is installed (as root, on Debian) or named.
build/bootstrapped: script/bootstrap
	script/bootstrap
	@mkdir -p build && touch $@

build/bootstrapped-tests: script/bootstrap | build/bootstrapped
	script/bootstrap --test
	@touch $@

build: build/bootstrapped $(PAGE)
	+$(LIBTALLY)
	+$(EXTENSION)
	$(CARGO) build --release --locked

# The packages' own install scripts are not run: nothing here needs them.
web/node_modules/.package-lock.json: web/package-lock.json | build/bootstrapped
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

$(PAGE): $(shell find web/src -type f) web/build.mjs web/node_modules/.package-lock.json
	cd web && node build.mjs

demo: build
	$(TALLY) demo

test: build build/bootstrapped-tests
	+$(LIBTALLY) test
	+$(MAKE) -C pg_tally/test PG_CONFIG=$(PG_CONFIG)
	cd web && npm test
	$(CARGO) test --workspace --locked --no-fail-fast

# PostgreSQL's own tests without and with the extension; some minutes.
check-server: build
	script/check-server

# The test of contrib/pg_stat_statements, against our view under its name; some seconds.
check-statements: build
	script/check-statements

# What attackers do to a live server, with a thousand rounds of random bytes; some 30 minutes. `make test` has 20 rounds.
attack: build build/bootstrapped-tests
	PGTALLY_ATTACK_ROUNDS=$${PGTALLY_ATTACK_ROUNDS:-1000} timeout --kill-after=30 40m \
		$(CARGO) test --release --locked -p tally $(ATTACKS) -- --nocapture --test-threads=1

# Everything at once for half an hour.
stress: build build/bootstrapped-tests
	PGTALLY_STRESS_SECONDS=1800 $(CARGO) test --release --locked -p tally --test stress -- --nocapture

# Every study's quick variant, one after the other into build/studies; three quarters of an hour. Interrupted, it goes on.
studies: build
	@script/bootstrap --studies
	@for study in studies/*/; do \
		name=$$(basename $$study); echo "== $$name"; \
		$(TALLY) study run $$name --quick -o build/studies/$$name > build/$$name.log || \
			{ cat build/$$name.log; exit 1; }; \
		sed -n '/not resolved\|±/p' build/$$name.log; rm -f build/$$name.log; \
	done

bench: build
	+$(LIBTALLY) bench
	$(TALLY) cost --workload select
	$(TALLY) cost --workload tpcb

lint: build/bootstrapped $(PAGE)
	+$(LIBTALLY)
	+$(EXTENSION)
	cd web && npm run check
	script/lint

# What was built is copied; nothing is built as root.
install:
	@test -x $(TALLY) && test -e pg_tally/pg_tally.so || { \
		echo "nothing to install yet; run make first, as an ordinary user" >&2; exit 1; }
	+$(EXTENSION) install DESTDIR=$(DESTDIR)
	install -D -m 755 $(TALLY) $(DESTDIR)$(PREFIX)/bin/tally
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,/usr/local,$(PREFIX),' systemd/pgtally-record@.service > \
		$(DESTDIR)$(PREFIX)/lib/systemd/system/pgtally-record@.service
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(TALLY) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(TALLY) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tally
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(TALLY) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tally
	install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(TALLY) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tally.fish

uninstall:
	+$(EXTENSION) uninstall DESTDIR=$(DESTDIR)
	rm -f $(DESTDIR)$(PREFIX)/bin/tally $(DESTDIR)$(PREFIX)/lib/systemd/system/pgtally-record@.service \
		$(DESTDIR)$(PREFIX)/share/man/man1/tally.1 \
		$(DESTDIR)$(PREFIX)/share/man/man1/tally-*.1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tally \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tally \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tally.fish

clean:
	-+$(LIBTALLY) clean
	-+$(EXTENSION) clean
	$(CARGO) clean
	rm -rf build web/node_modules

.PHONY: all build demo test check-server check-statements attack stress studies bench lint install uninstall clean
