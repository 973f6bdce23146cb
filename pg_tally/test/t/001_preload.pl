# SPDX-License-Identifier: PostgreSQL
# In shared_preload_libraries: the server's own processes are instrumented, the level follows the configuration, and a
# stop leaves nothing.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_tally'\npg_tally.level = locks");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_tally');

sub status
{
	my ($name) = @_;
	return $node->safe_psql('postgres', "SELECT value FROM tally.status WHERE name = '$name'");
}

is(status('active'), 'yes', 'the server is instrumented');
is(status('this session'), 'instrumented', 'a session is instrumented');
is(status('level'), 'locks', 'the level is the configured one');
for my $kind ('autovacuum launcher', 'background writer', 'checkpointer', 'walwriter')
{
	ok($node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM tally.sessions WHERE kind = '$kind')"),
		"the $kind is instrumented");
}

# One session waits for an advisory lock that another one holds.
my $holder = $node->background_psql('postgres');
my $waiter = $node->background_psql('postgres');
my $pid = $waiter->query_safe('SELECT pg_backend_pid()');
$holder->query_safe('SELECT pg_advisory_lock(1)');
$waiter->query_until(qr/begins/, "\\echo begins\nSELECT pg_advisory_lock(1);\n");
ok( $node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND wait_event = 'advisory')"),
	'a session waits for the lock');
is($node->safe_psql('postgres', "SELECT phase, activity FROM tally.sessions WHERE pid = $pid"),
	'simple query|Lock:advisory', 'its activity is the wait');
my $blocker = $holder->query_safe('SELECT pg_backend_pid()');
ok( $node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM tally.blocking WHERE pid = $pid AND root_pid = $blocker)"),
	'the view names who blocks it');
$holder->quit;
$waiter->query_safe('SELECT 1');
$waiter->quit;
is($node->safe_psql('postgres', "SELECT mode, phase, count FROM tally.locks WHERE type = 'advisory'"),
	'ExclusiveLock|simple query|1', 'one wait is counted');
is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM tally.lwlocks WHERE held_count > 0"),
	't', 'lightweight locks are counted');

# A reload changes the level of running processes; at level off nothing is counted.
$node->append_conf('postgresql.conf', 'pg_tally.level = off');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT value = 'off' FROM tally.status WHERE name = 'level'"), 'a reload switches off');
my $calls = "SELECT coalesce(sum(calls), 0) FROM tally.statements WHERE query LIKE '%AS unseen' AND query NOT LIKE '%calls%'";
$node->safe_psql('postgres', "SELECT 'a', 'b' AS unseen");
is($node->safe_psql('postgres', $calls), '0', 'no statement is counted at level off');
$node->append_conf('postgresql.conf', 'pg_tally.level = waits');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT value = 'waits' FROM tally.status WHERE name = 'level'"), 'a reload switches on');
$node->safe_psql('postgres', "SELECT 'a', 'b' AS unseen");
is($node->safe_psql('postgres', $calls), '1', 'a statement is counted again');

my $segment = status('segment');
ok(-e $segment, 'the segment is a file');
$node->stop;
ok(!-e $segment, 'a stop removes it');

done_testing();
