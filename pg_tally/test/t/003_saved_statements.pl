# SPDX-License-Identifier: PostgreSQL
# Statements over a restart, by pg_tally.statements_save.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_tally'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_tally; CREATE TABLE kept (a int)');
$node->safe_psql('postgres', "INSERT INTO kept VALUES ($_)") for 1 .. 5;

my $calls = "SELECT sum(calls), sum(rows) FROM tally.statements WHERE query LIKE 'INSERT INTO kept%'";
my $saved = $node->data_dir . '/pg_stat/pg_tally.statements';
is($node->safe_psql('postgres', $calls), '5|5', 'executions before the restart');
ok(!-e $saved, 'a running server has no file');
$node->restart;
is($node->safe_psql('postgres', $calls), '5|5', 'a restart keeps them');
$node->safe_psql('postgres', 'INSERT INTO kept VALUES (6)');
is($node->safe_psql('postgres', $calls), '6|6', 'they go on counting');
$node->stop;
ok(-s $saved, 'a stopped server has a file');

# A damaged file is put aside, and the server starts.
my $bytes = slurp_file($saved);
substr($bytes, length($bytes) / 2, 16) = 'x' x 16;
open my $file, '>:raw', $saved or die "$saved: $!";
print $file $bytes;
close $file or die "$saved: $!";
$node->start;
ok(-e "$saved.damaged", 'a damaged file is put aside');
is($node->safe_psql('postgres', $calls), '|', 'nothing is read from it');

$node->append_conf('postgresql.conf', 'pg_tally.statements_save = off');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT current_setting('pg_tally.statements_save') = 'off'"), 'saving is switched off');
$node->safe_psql('postgres', 'INSERT INTO kept VALUES (7)');
$node->restart;
is($node->safe_psql('postgres', $calls), '|', 'a restart forgets them');
$node->stop;

done_testing();
