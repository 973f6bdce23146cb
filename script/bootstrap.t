#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Only `make bootstrap`, `make demo` and `make test` install packages. Runs in a separate directory, with stubs for the programs
# that inspect the system and install packages.
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $tree = tempdir(CLEANUP => 1);
make_path(map { "$tree/$_" } qw(script bin build client/java/src web/src));
copy("$root/$_", "$tree/$_") or die "$_: $!" for qw(Makefile Cargo.toml client/java/pom.xml web/build.mjs web/package-lock.json);
my $calls = "$tree/calls";

sub executable {
    my ($path, @lines) = @_;
    open my $file, '>', "$tree/$path" or die "$tree/$path: $!";
    print $file map {"$_\n"} '#!/bin/sh', @lines;
    close $file or die "$tree/$path: $!";
    chmod 0755, "$tree/$path";
    return;
}

# Runs a command there; returns its status, the stubs' log, and its output.
sub ran {
    my ($command) = @_;
    unlink $calls;
    my $output = qx(cd '$tree' && env -i PATH='$tree/bin:/usr/bin:/bin' HOME='$tree' CARGO=cargo $command 2>&1);
    my $status = $? >> 8;
    my $noted = '';
    if (open my $file, '<', $calls) {
        local $/ = undef;
        $noted = <$file>;
    }
    return ($status, $noted, $output);
}

# The first call of script/bootstrap by each target. It fails, so make stops there.
executable('script/bootstrap', "echo \"bootstrap \$*\" >> '$calls'", 'exit 1');
for my $target (qw(all build build-extension build-command check lint test-build test-matrix test-all verify check-server
    check-statements instructions attack stress studies bench deb test-packages test-cgroup2 test-containers)) {
    my (undef, $noted) = ran("make $target");
    like($noted, qr/\Abootstrap --check( --packages)?\n\z/, "make $target only checks");
}
for my $target (qw(bootstrap test)) {
    my (undef, $noted) = ran("make $target");
    is($noted, "bootstrap \n", "make $target installs");
}
is((ran('make demo'))[1], "bootstrap --demo\n", 'make demo installs what the demo needs');

# script/bootstrap itself, as root, on a Debian that has only Rust and Node.js.
copy("$root/script/bootstrap", "$tree/script/bootstrap") or die "bootstrap: $!";
executable('bin/id', 'echo 0');
executable('bin/dpkg-query', 'exit 1');
executable('bin/apt-cache', 'exit 1');
executable("bin/$_", "echo \"$_ \$*\" >> '$calls'") for qw(apt-get rustup systemctl);
executable("bin/$_", "echo $_ 99.0.0") for qw(cargo rustc npm chromium prometheus mvn javac);
executable('bin/node', 'echo v99.0.0');
executable('script/otelcol', "echo otelcol >> '$calls'");
executable('script/node', "echo node >> '$calls'");

for my $what ('', ' --demo', ' --test', ' --packages') {
    my ($status, $noted, $output) = ran("script/bootstrap --check$what");
    is($noted, '', "bootstrap --check$what installs nothing");
    is($status, 1, "bootstrap --check$what fails");
    like($output, qr/^missing: \S/m, "bootstrap --check$what says what is missing");
    like($output, qr/^run: (make bootstrap|script\/bootstrap --packages)$/m, "bootstrap --check$what says what to run");
}
my ($status, $noted, $output);
for my $what ('--studies', '--clusters') {
    ($status, $noted, $output) = ran("script/bootstrap --check $what");
    is("$status$noted", '0', "bootstrap --check $what installs nothing, and what is missing is left out");
    like($output, qr/skipped; missing packages: /, 'it says so');
}
for my $what ('', ' --demo', ' --test', ' --packages', ' --studies', ' --clusters') {
    my $installed = (ran("script/bootstrap$what"))[1];
    like($installed, qr/^apt-get update .*^apt-get .* install .*--no-remove \S/ms, "bootstrap$what installs");
}

executable('bin/id', 'echo 1000');
for my $what ('', ' --check') {
    my ($status, $noted, $output) = ran("script/bootstrap$what");
    is("$status$noted", '1', "bootstrap$what installs nothing as another user than root");
    like($output, qr/^run: sudo apt-get install --no-install-recommends \S/m, 'it prints the command');
}

# Without Node.js, Rust or the lints.
executable('bin/id', 'echo 0');
executable('bin/dpkg-query', 'echo installed');
is((ran('script/bootstrap --check'))[0], 0, 'with everything there, a check passes');
unlink "$tree/bin/npm";
($status, $noted, $output) = ran('script/bootstrap --check');
SKIP: {
    skip 'the system has npm', 1 if -e '/usr/bin/npm';
    is("$status$noted", '1', 'Node.js is not fetched by a check');
}
executable('bin/npm', 'echo 99.0.0');
executable('bin/rustc', 'echo rustc 1.0.0');
($status, $noted, $output) = ran('script/bootstrap --check');
is("$status$noted", '1', 'Rust is not installed by a check');
like($output, qr/^run: make bootstrap$/m, 'it says what installs Rust');
executable('bin/cargo', 'exit 1');
($status, $noted, $output) = ran('script/bootstrap --check --lint');
is("$status$noted", '1', 'rustfmt and clippy are not installed by a check');

done_testing();
