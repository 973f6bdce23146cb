#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# `make install-command` installs files that everybody may read, whatever the umask is, and `make uninstall-command` removes them
# all. Runs in a separate directory, with a stub for the command.
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/..');
my $tree = tempdir(CLEANUP => 1);
make_path(map { "$tree/$_" } qw(client/libpq systemd build/libpq));
copy("$root/$_", "$tree/$_") or die "$_: $!" for qw(Makefile Cargo.toml client/libpq/Makefile systemd/pgtally-record@.service);

sub executable {
    my ($path, @lines) = @_;
    open my $file, '>', "$tree/$path" or die "$tree/$path: $!";
    print $file map {"$_\n"} @lines;
    close $file or die "$tree/$path: $!";
    chmod 0755, "$tree/$path";
    return;
}
executable('build/libpq/libtally_pq.so', 'a library');
# Writes what `tally man DIR`, `tally dashboards DIR` and `tally completions SHELL` do.
executable(
    'tally', '#!/bin/sh', 'case $1 in',
    'man) echo page > "$2/tally.1"; echo page > "$2/tally-top.1" ;;',
    'dashboards) mkdir -p "$2/grafana"; echo board > "$2/grafana/board.json" ;;',
    'completions) echo "complete $2" ;;', 'esac'
);

# Paths of files below the directory, and those of files and directories that others may not use.
sub installed {
    my (@files, @closed);
    find(
        sub {
            my $mode = (stat $_)[2];
            push @closed, $File::Find::name if ($mode & (-d _ ? 05 : 04)) != (-d _ ? 05 : 04);
            push @files, $File::Find::name =~ s{^\Q$tree\E/new}{}r if -f _;
        },
        "$tree/new"
    );
    return ([sort @files], \@closed);
}

mkdir "$tree/new";
chmod 0755, "$tree/new";
my $make = "make -s -C '$tree' TALLY='$tree/tally' DESTDIR='$tree/new' PREFIX=/opt/tally";
my $output = qx(umask 077; $make install-command 2>&1);
is($?, 0, 'installs') or diag $output;
my ($files, $closed) = installed();
is_deeply(
    $files,
    [map {"/opt/tally/$_"} qw(
        bin/tally lib/pgtally/libtally_pq.so lib/systemd/system/pgtally-record@.service
        share/bash-completion/completions/tally share/fish/vendor_completions.d/tally.fish share/man/man1/tally-top.1
        share/man/man1/tally.1 share/pgtally/grafana/board.json share/zsh/site-functions/_tally
    )],
    'each file is where it belongs'
);
is_deeply($closed, [], 'everybody may read them, though the umask is 077');
my $unit = qx(cat '$tree/new/opt/tally/lib/systemd/system/pgtally-record\@.service');
like($unit, qr{^ExecStart=/opt/tally/bin/tally record }m, 'the unit runs the installed command');

$output = qx($make uninstall-command 2>&1);
is($?, 0, 'uninstalls') or diag $output;
is_deeply((installed())[0], [], 'no file is left');

done_testing();
