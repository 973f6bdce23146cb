#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Tests script/instructions without a server: usage errors, reading of callgrind's files, and the reports of --check.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use Test::More import => [qw(is is_deeply like unlike skip done_testing)];

my $script = "$FindBin::Bin/../script/instructions";
my $folder = tempdir(CLEANUP => 1);

sub file {
    my ($name, $text) = @_;
    open my $out, '>', "$folder/$name" or die $!;
    print $out $text;
    close $out;
    return "$folder/$name";
}

# Exit status and output of the script.
sub run {
    my ($arguments, %environment) = @_;
    local @ENV{ keys %environment } = values %environment;
    my $output = `$script $arguments 2>&1`;
    return ($? >> 8, $output);
}

# ------------------------------------------------------------------ the command line

for my $case (
    [ '--arm nothing',            qr/unknown arm "nothing"; use none, .*installed/ ],
    [ "--arm ''",                 qr/--arm needs a name|unknown arm/ ],
    [ '--workload select,',       qr/unknown workload ""/ ],
    [ '--workload tpcc',          qr/unknown workload "tpcc"; use select, tpcb/ ],
    [ '--transactions 0',         qr/--transactions 0: not a number from 10 to 1500/ ],
    [ '--transactions many',      qr/--transactions many: not a number/ ],
    [ '--functions -1',           qr/--functions -1: not a number/ ],
    [ '--runs 1',                 qr/--runs 1: not a number from 2 to 100/ ],
    [ '--jobs 99999999999999',    qr/--jobs 99999999999999: not a number/ ],
    [ '--arm',                    qr/arm requires an argument/ ],
    [ '--chek',                   qr/Unknown option: chek/ ],
    [ 'select',                   qr/unexpected argument "select"/ ],
    [ '--check --write',          qr/exclude each other/ ],
    [ '--runs 3 --check',         qr/--runs excludes/ ],
    [ '--lines --check',          qr/--lines excludes/ ],
    [ '--write --workload select', qr/--write needs all/ ],
) {
    my ($arguments, $text) = @$case;
    my ($status, $output) = run($arguments);
    is($status, 2, "status of: $arguments");
    like($output, $text, "message of: $arguments");
}
my ($status, $output) = run('--help');
is($status, 0, 'help is no error');
like($output, qr/--check/, 'help names the options');

($status, $output) = run('--check', PG_CONFIG => "$folder/nothing");
is($status, 1, 'a server that is missing');
like($output, qr/PG_CONFIG/, 'is named');

# ------------------------------------------------------------------ callgrind's files

require $script;

my $first = file('one', <<'PROFILE');
# callgrind format
version: 1
creator: callgrind-3.19.0
events: Ir
ob=(1) /usr/lib/postgresql/15/bin/postgres
fl=(1) ???
fn=(1) ExecutorRun
0 100
cob=(2) /tmp/lib/pg_tally.so
cfi=(2) /src/statements.c
cfn=(2) executor_run
calls=3 +10
0 70
+2 5

ob=(2)
fl=(2)
fn=(2)
12 40
fi=(3) /src/usage.h
+3 20
fe=(2)
* 10
cob=(3) ???
cfi=(1)
cfn=(3) 0x0000000000d90d00
calls=3 0
15 6

ob=(3)
fl=(1)
fn=(3)
0 6

totals: 181
PROFILE
my $profile = main::profile($first);
is($profile->{total}, 181, 'the total does not contain what is called');
is($profile->{self}{"/tmp/lib/pg_tally.so\texecutor_run\t/src/statements.c"}, 70,
    'inlined code of another file belongs to its function');
is($profile->{self}{"/usr/lib/postgresql/15/bin/postgres\tExecutorRun\t???"}, 105, 'a function of the server');
is($profile->{calls}{executor_run}, 3, 'calls are counted');
is($profile->{self}{"???\t0x0000000000d90d00\t???"}, 6, 'code without an object');
is_deeply($profile->{data}, {}, 'no caches were simulated');

my $lines = main::profile(file('lines', <<'PROFILE'));
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
ob=(1) /tmp/lib/pg_tally.so
fl=(1) /src/statements.c
fn=(1) executor_run
12 40 9 5 3 2 1 1 1
+2 5
cfn=(2) run
calls=1 +10
* 70 8 8 8 8 8
+1 5 2 1 0 4

totals: 50
PROFILE
is($lines->{code}{'/tmp/lib/pg_tally.so'}, 3, 'lines of code, without those of what is called');
is($lines->{data}{'/tmp/lib/pg_tally.so'}, 7, 'lines of data read and written');

my $none = { total => 81, self => {}, calls => { executor_run => 1 } };
my $difference = main::difference($profile, $none, 2);
is($difference->{total}, 50, 'the difference is per transaction');
is($difference->{calls}{executor_run}, 1, 'of calls too');

# ------------------------------------------------------------------ the comparison

my $baseline_file = file('baseline', <<'BASELINE');
# a comment
condition compiler gcc 1
condition server PostgreSQL 15.1
figure select installed library 1000.0
figure select installed added 2000.0
function select installed 600.0 executor_run statements.c
function select installed 300.0 record files.c
BASELINE
my $baseline = main::read_baseline($baseline_file);

sub result {
    my ($run, $record, $added) = @_;
    my %self = ('executor_run statements.c' => $run, 'record files.c' => $record, 'others x.c' => 100);
    return { installed => { select => { library => $run + $record + 100, added => $added, self => \%self } } };
}

is_deeply([ main::differences($baseline, result(600, 300, 2000)) ], [], 'the same figures');
is_deeply([ main::differences($baseline, result(615, 300, 2035)) ], [], '1.5 % more is within the tolerance');

my @grown = main::differences($baseline, result(600, 325, 2000));
is(scalar @grown, 1, '2.5 % more in the library is reported');
like($grown[0], qr/^select, installed: .* grew from 1000\.0 to 1025\.0 \(\+2\.5 %\)/, 'with workload, arm and figures');
like($grown[0], qr/\+25\.0 record files\.c \(325\.0, was 300\.0\)/, 'and the function');
unlike($grown[0], qr/executor_run/, 'and no other one');

my @shrunk = main::differences($baseline, result(500, 300, 2000));
like($shrunk[0], qr/shrank from 1000\.0 to 900\.0/, 'less is reported too');
like($shrunk[0], qr/-100\.0 executor_run/, 'with its function');

my $new = result(600, 300, 2000);
$new->{installed}{select}{self}{'added_one new.c'} = 50;
$new->{installed}{select}{library} += 50;
like((main::differences($baseline, $new))[0], qr/\+50\.0 added_one new\.c \(50\.0, was not in the baseline\)/,
    'a new function is named');

my @called = main::differences($baseline, result(600, 300, 2100));
like($called[0], qr/with what it calls, grew from 2000\.0 to 2100\.0/, 'what the library calls counts');

my $large = result(600, 300, 2100);
$large->{none}{select}{total} = 100_000;
is_deeply([ main::differences($baseline, $large) ], [], "what the server's own work varies by does not");

is_deeply([ main::other_conditions($baseline, { compiler => 'gcc 1', server => 'PostgreSQL 15.1' }) ], [],
    'the same conditions');
is_deeply([ main::other_conditions($baseline, { compiler => 'gcc 2', server => 'PostgreSQL 15.1' }) ],
    ['compiler: the baseline is for gcc 1, here is gcc 2'], 'another compiler');

# ------------------------------------------------------------------ the baseline's file

sub written {
    my ($text) = @_;
    return run('--check', PGTALLY_INSTRUCTIONS_BASELINE => file('other', $text));
}

SKIP: {
    my $library = $ENV{PGTALLY_LIBRARY} // "$FindBin::Bin/../pg_tally/pg_tally.so";
    skip('the extension is not built, or valgrind is missing', 7)
        if !-e $library || system('command -v valgrind >/dev/null 2>&1');
    ($status, $output) = written("condition compiler other\nfigure select installed library 1\n");
    is($status, 0, 'another compiler is no failure');
    like($output, qr/^not tested: .*\n +compiler: the baseline is for other, here is GCC/, 'but not passed silently');
    ($status, $output) = written("figure select installed\n");
    is($status, 1, 'a damaged baseline');
    like($output, qr/other:1: not a line of a baseline/, 'is named with its line');
    is((written(''))[0], 1, 'an empty baseline');
    ($status, $output) = run('--check', PGTALLY_INSTRUCTIONS_BASELINE => "$folder/missing");
    is($status, 1, 'a missing baseline');
    like($output, qr/could not open the baseline .*--write/, 'the remedy is named');
}

done_testing();
