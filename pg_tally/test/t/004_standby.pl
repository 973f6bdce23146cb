# SPDX-License-Identifier: PostgreSQL
# Two servers of one machine, a primary and its standby: each has figures of its own, and the views arrive by replication.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_tally'");
$primary->start;
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_tally; CREATE TABLE replicated AS SELECT 1 AS a');
$primary->wait_for_catchup($standby);

sub value
{
	my ($node, $sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

my $segment = "SELECT value FROM tally.status WHERE name = 'segment'";
my @segments = (value($primary, $segment), value($standby, $segment));
isnt($segments[0], $segments[1], 'each has a segment of its own');
is(value($primary, "SELECT count(*) FROM tally.sessions WHERE kind = 'walsender'"), '1', 'the primary has the WAL sender');
is(value($standby, "SELECT string_agg(kind, ' ' ORDER BY kind COLLATE \"C\") FROM tally.sessions WHERE kind IN ('startup', 'walreceiver', 'walsender')"),
	'startup walreceiver', 'the standby has its recovery and the WAL receiver');

my $calls = "SELECT coalesce(sum(calls), 0) FROM tally.statements WHERE query LIKE 'SELECT a FROM replicated%'";
is(value($standby, 'SELECT a FROM replicated'), '1', 'the standby answers');
is(value($standby, $calls), '1', 'the standby counts its statement');
is(value($primary, $calls), '0', 'the primary does not');
value($standby, 'SELECT FROM tally.reset()');
is(value($standby, $calls), '0', 'the standby can be reset');
cmp_ok(value($primary, 'SELECT count(*) FROM tally.statements'), '>', 0, 'which resets nothing of the primary');

$primary->stop;
$standby->promote;
value($standby, 'INSERT INTO replicated VALUES (2)');
is(value($standby, "SELECT calls, rows FROM tally.statements WHERE query LIKE 'INSERT INTO replicated%'"),
	'1|1', 'a promoted standby counts what it writes');
$standby->stop;
ok(!-e $_, "$_ is removed") for @segments;

done_testing();
