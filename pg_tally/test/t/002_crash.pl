# SPDX-License-Identifier: PostgreSQL
# A backend that is killed, and a server that is.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_tally'\nrestart_after_crash = on");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_tally; CREATE TABLE kept (a int)');
$node->safe_psql('postgres', "INSERT INTO kept VALUES ($_)") for 1 .. 5;

my $calls = "SELECT sum(calls) FROM tally.statements WHERE query LIKE 'INSERT INTO kept%'";
is($node->safe_psql('postgres', $calls), '5', 'executions before the crash');
my $segment = $node->safe_psql('postgres', "SELECT value FROM tally.status WHERE name = 'segment'");

# The server ends all other sessions, and starts anew with the same segment.
my $victim = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $victim->query('SELECT pg_backend_pid()');
kill 'KILL', $pid;
ok( $node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)"),
	'the server is there again');
$victim->{run}->kill_kill;
is($node->safe_psql('postgres', $calls), '5', 'a crash of a session keeps the statements');
is($node->safe_psql('postgres', "SELECT value FROM tally.status WHERE name = 'slots found damaged'"), '0', 'no slot is damaged');
is($node->safe_psql('postgres', "SELECT value FROM tally.status WHERE name = 'segment'"), $segment, 'the segment is the same');
$node->safe_psql('postgres', 'INSERT INTO kept VALUES (6)');
is($node->safe_psql('postgres', $calls), '6', 'executions go on counting');

# What an immediate stop leaves does not matter to the next start.
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT value FROM tally.status WHERE name = 'active'"), 'yes', 'the next start is instrumented');
is($node->safe_psql('postgres', "SELECT count(*) FROM kept"), '6', 'the table is recovered');
$node->stop;
ok(!-e $segment, 'a clean stop removes the segment');

done_testing();
