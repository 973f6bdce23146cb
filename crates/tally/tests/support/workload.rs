// SPDX-License-Identifier: PostgreSQL
//! A little of everything that a client may request from a server, for tests that compare statement statistics
//! with another witness.

use std::io::Write;
use std::time::Duration;

use postgres::{Client, NoTls};
use scratch::{Cluster, Load};

/// Number of distinct statements.
pub const DISTINCT: u32 = 3000;

/// Sessions of each pgbench run, and transactions of each session.
const SESSIONS: u32 = 4;
const TRANSACTIONS: u64 = 150;

/// A utility statement, some of whose executions pg_stat_statements misses, because it clears the ID in a cached
/// plan.
pub struct LostByWitness {
    pub text: &'static str,
    /// Executions in [`run`]; none, because others have the same ID, and it misses [`PREPARED_AGAIN`].
    pub calls: Option<i64>,
}

/// Executions of a prepared statement after each session's first.
pub const PREPARED_AGAIN: i64 = SESSIONS as i64 * (TRANSACTIONS as i64 - 1);

const PREPARED_BEGIN: &str = "begin isolation level repeatable read read write";
const PREPARED_END: &str = "commit and no chain";
const SET_IN_FUNCTION: &str = "set local enable_tidscan = on";
const ROUNDS: i64 = 7;

/// Statements of [`run`] that are executed repeatedly from one cached plan.
pub fn lost_by_witness(major: u32) -> Vec<LostByWitness> {
    let lost = |text, calls| LostByWitness { text, calls: Some(calls) };
    let mut all = vec![lost(PREPARED_BEGIN, i64::from(SESSIONS) * TRANSACTIONS as i64)];
    // From 16 on, the ID is that of the statement's tree, and all forms of COMMIT are one statement.
    all.push(match major {
        15 => lost(PREPARED_END, i64::from(SESSIONS) * TRANSACTIONS as i64),
        _ => LostByWitness { text: "commit", calls: None },
    });
    // From 18 on, constants of SET are replaced.
    all.push(match major {
        15..=17 => lost(SET_IN_FUNCTION, 2 * ROUNDS),
        _ => lost("set local enable_tidscan = $1", 2 * ROUNDS + 2),
    });
    // SQL functions had no IDs until 16; from 18 on, they have cached plans. In between, each execution is seen.
    if major < 17 {
        all.push(lost("set local enable_tidscan = off", 2));
    }
    if major != 17 {
        all.push(lost("create temp table in_sql_function (n int)", 2));
        all.push(lost("drop table in_sql_function", 2));
    }
    all
}

/// Runs everything. The returned sessions still have figures in their local entries.
pub fn run(cluster: &Cluster) -> Vec<Client> {
    cluster.pgbench_init(2).unwrap();
    tables(cluster);
    pgbench(cluster);
    let steps: [fn(&Cluster, &mut Client); 15] = [
        functions,
        utilities,
        definitions,
        cursors,
        portals,
        copies,
        errors,
        rewritten,
        lists,
        prepared,
        temporary,
        parallel,
        compiled,
        roles,
        distinct,
    ];
    steps
        .iter()
        .map(|step| {
            let mut client = cluster.connect().unwrap();
            step(cluster, &mut client);
            client
        })
        .collect()
}

fn ask(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Runs the statements in order, each in its own message.
fn each(client: &mut Client, statements: &[&str]) {
    for sql in statements {
        ask(client, sql);
    }
}

/// Runs a statement that must fail without ending the session.
fn fail(client: &mut Client, sql: &str) {
    let error = client.batch_execute(sql).expect_err(sql);
    assert!(error.as_db_error().is_some(), "{sql}: {error}");
}

fn tables(cluster: &Cluster) {
    let mut client = cluster.connect().unwrap();
    each(
        &mut client,
        &[
            "create table numbers (n int primary key, t text)",
            "insert into numbers select n, 'number ' || n from generate_series(1, 5000) n",
            "create table owners (id int primary key, name text)",
            "create table things (id int primary key, owner int references owners on delete cascade)",
            "create table written (n int, at timestamptz default now())",
            "create function note() returns trigger language plpgsql as
             $$ begin insert into written (n) values (new.id); return new; end $$",
            "create trigger things_note after insert or update on things
             for each row execute function note()",
        ],
    );
}

fn pgbench(cluster: &Cluster) {
    let all = |load: Load, protocol| {
        let run = cluster.pgbench().load(load).clients(SESSIONS).jobs(2).protocol(protocol);
        run.transactions(TRANSACTIONS).arg("--define=scale=2").run().unwrap();
    };
    all(Load::TpcB, "simple");
    all(Load::TpcB, "extended");
    all(Load::Select, "prepared");
    let script = format!(
        "\\set aid random(1, 100000 * :scale)
{PREPARED_BEGIN};
update pgbench_tellers set tbalance = tbalance + 1 where tid = 1 + :client_id;
select abalance + 1 from pgbench_accounts where aid = :aid;
{PREPARED_END};
"
    );
    all(Load::Script(script), "prepared");
    let pipeline = "\\set aid random(1, 100000 * :scale)
\\startpipeline
select abalance + 2 from pgbench_accounts where aid = :aid;
update pgbench_accounts set abalance = abalance - 1 where aid = :aid;
select count(*) from pgbench_branches where bid > :client_id;
\\endpipeline
";
    all(Load::Script(pipeline.into()), "extended");
}

fn functions(_: &Cluster, client: &mut Client) {
    let repeat = format!(
        "create function repeat_utility(n int) returns void language plpgsql as
         $$ begin for i in 1..n loop {SET_IN_FUNCTION}; end loop; end $$"
    );
    each(
        client,
        &[
            "create function one_more(i int) returns int language plpgsql as
             $$ declare r int; begin select i + 1 into r; return r; end $$",
            "create function nested(i int) returns int language plpgsql as
             $$ declare r int := 0; begin
                for k in 1..i loop r := r + (select one_more(k) from numbers where n = k); end loop;
                return r; end $$",
            "create function caught(i int) returns int language plpgsql as
             $$ declare r int := 0; begin
                for k in 0..i loop
                    begin select 100 / (k % 3) + r into r;
                    exception when division_by_zero then r := r + 1; end;
                end loop;
                return r; end $$",
            "create function looped() returns bigint language plpgsql as
             $$ declare v record; s bigint := 0; begin
                for v in select n from numbers where n < 200 order by n loop s := s + v.n; end loop;
                return s; end $$",
            "create function several(i int) returns setof int language plpgsql as
             $$ begin return query select n from numbers where n <= i;
                return query execute 'select n from numbers where n > $1 limit 3' using i; end $$",
            "create function in_sql(i int) returns bigint language sql volatile as
             $$ insert into written (n) values (i); select count(*) from written where n = i $$",
            "create function inlined(i int) returns int language sql immutable as $$ select i * 2 $$",
            "create function recursive(i int) returns int language plpgsql as
             $$ begin if i = 0 then return 0; end if; return recursive(i - 1) + 1; end $$",
            "create function utility_in_sql() returns void language sql as
             $$ set local enable_tidscan = off; create temp table in_sql_function (n int);
                drop table in_sql_function $$",
            "create procedure committing(i int) language plpgsql as
             $$ begin for k in 1..i loop insert into written (n) values (k);
                if k % 2 = 0 then commit; else rollback; end if; end loop; end $$",
            &repeat,
            "select one_more(1), one_more(2)",
            "select nested(20)",
            "select nested(5)",
            "select sum(one_more(n)) from numbers where n < 100",
            "select caught(10)",
            "select looped()",
            "select count(*) from several(10)",
            "select in_sql(3), in_sql(4)",
            "select inlined(n) from numbers where n < 4",
            "select recursive(30)",
            "select utility_in_sql()",
            "select utility_in_sql()",
            "call committing(6)",
            "call committing(3)",
            "select repeat_utility(7)",
            "select repeat_utility(7)",
            "do $$ begin perform count(*) from numbers; perform one_more(4); end $$",
            "do $$ begin perform count(*) from numbers; perform one_more(4); end $$",
            "do $$ begin execute 'create temp table made (n int)'; insert into made values (1);
                drop table made; end $$",
        ],
    );
}

fn utilities(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "explain select count(*) from numbers",
            "explain (analyze, costs off) select count(*) from numbers where n > 10",
            "explain analyze insert into written (n) select n from numbers where n < 20",
            "explain analyze create table explained as select n from numbers",
            "begin",
            "savepoint a",
            "insert into written (n) values (1)",
            "rollback to a",
            "release a",
            "lock table written in share mode",
            "commit",
            "set work_mem = '5MB'",
            "show work_mem",
            "reset work_mem",
            "listen somebody",
            "notify somebody, 'text'",
            "unlisten *",
            "checkpoint",
            "vacuum analyze numbers",
            "analyze things",
            "begin; set local work_mem = '1MB'; select 1 as in_between; commit",
            "select 1 as one; select 2 as two; insert into written (n) values (5)",
            "; ;  select 3 + 3 ;;; select ' ' || ' !' ;; ",
            "/* before */ select 4 as commented /* after */",
            "-- a line\nselect 5 as commented_by_line -- at the end",
            "discard plans",
        ],
    );
    // Statements that differ only in white space and constants, and several constants in one.
    each(
        client,
        &["select  'a'  as  spaced ,  1", "select 'b' as spaced, 2", "select -1, - 1, 1e3"],
    );
}

fn definitions(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "create schema s create table inside (n serial primary key, m int unique)
             create view seen as select * from inside create index on inside (m)",
            "create table parent (n int, k text) partition by range (n)",
            "create table child_1 partition of parent for values from (0) to (1000)",
            "create table child_2 partition of parent for values from (1000) to (10000)",
            "insert into parent select n, t from numbers",
            "update parent set n = n + 500 where n between 800 and 900",
            "create index on parent (n)",
            "create index concurrently numbers_t on numbers (t)",
            "alter table numbers add column extra int default 7",
            "alter table numbers alter column extra type bigint",
            "cluster numbers using numbers_pkey",
            "create table made_as as select n, t from numbers where n < 100",
            "select n into made_into from numbers where n < 50",
            "create materialized view matter as select n % 10 as d, count(*) as c from numbers group by 1",
            "create unique index on matter (d)",
            "refresh materialized view matter",
            "refresh materialized view concurrently matter",
            "create table if not exists made_as as select 1",
            "comment on table made_as is 'made'",
            "truncate made_as",
            "create type color as enum ('red', 'green')",
            "create domain small as int check (value < 100)",
            "create function note_ddl() returns event_trigger language plpgsql as
             $$ begin perform count(*) from pg_event_trigger_ddl_commands(); end $$",
            "create event trigger ddl_noted on ddl_command_end execute function note_ddl()",
            "create table watched (n int)",
            "drop event trigger ddl_noted",
            "drop table watched, made_into",
            "drop schema s cascade",
            "grant select on numbers to public",
        ],
    );
}

fn cursors(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "begin",
            "declare c scroll cursor for select * from numbers where n < 1000 order by t",
            "fetch 10 from c",
            "fetch 10 from c",
            "fetch forward all from c",
            "fetch backward 3 from c",
            "move absolute 5 in c",
            "close c",
            "declare d cursor for select n from numbers",
            "fetch next from d",
            "declare e cursor with hold for select n from numbers where n > 4900",
            "commit",
            "fetch 5 from e",
            "fetch all from e",
            "close e",
            "begin",
            "declare g cursor for select n, t from numbers where n between 5 and 8 for update",
            "fetch 1 from g",
            "update numbers set t = 'seven' where current of g",
            "rollback",
        ],
    );
}

/// Portals of the extended protocol, fetched in parts, completely or not.
fn portals(_: &Cluster, client: &mut Client) {
    let mut transaction = client.transaction().unwrap();
    let sql = "select n, t from numbers where n <= $1 order by n";
    let statement = transaction.prepare(sql).unwrap();
    for limit in [95, 30, 10] {
        let portal = transaction.bind(&statement, &[&limit]).unwrap();
        let mut rows = 0;
        loop {
            let part = transaction.query_portal(&portal, 30).unwrap().len();
            rows += part;
            if part < 30 {
                break;
            }
        }
        assert_eq!(rows, limit as usize);
    }
    let portal = transaction.bind(&statement, &[&4000]).unwrap();
    assert_eq!(transaction.query_portal(&portal, 7).unwrap().len(), 7);
    let insert = "insert into written (n) select n from numbers where n < $1 returning n";
    let portal = transaction.bind(insert, &[&40]).unwrap();
    assert_eq!(transaction.query_portal(&portal, 7).unwrap().len(), 7);
    transaction.commit().unwrap();
}

fn copies(_: &Cluster, client: &mut Client) {
    ask(client, "create table copied (n int, t text)");
    for rows in [5000, 10] {
        let mut copy = client.copy_in("copy copied from stdin").unwrap();
        for n in 0..rows {
            writeln!(copy, "{n}\tsome text that fills a row").unwrap();
        }
        assert_eq!(copy.finish().unwrap(), rows);
    }
    let mut copy = client.copy_in("copy things (id, owner) from stdin with (format csv)").unwrap();
    copy.write_all(b"900,\n901,\n").unwrap();
    copy.finish().unwrap();
    for sql in ["copy copied to stdout", "copy (select n from copied where n < 50) to stdout"] {
        let mut out = client.copy_out(sql).unwrap();
        std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    }
    // This one fails half-way.
    let mut copy = client.copy_in("copy copied (n) from stdin").unwrap();
    copy.write_all(b"1\n2\nno number\n").unwrap();
    assert!(copy.finish().is_err());
}

fn errors(cluster: &Cluster, client: &mut Client) {
    for sql in [
        "selec 1",
        "select no_such_column from numbers",
        "select 1 / 0",
        "select 7 / (n - 5) from numbers order by n",
        "insert into numbers values (1, 'there already')",
        "insert into things values (1, 77)",
        "select one_more('x')",
        "create table numbers ()",
        "drop table no_such_table",
        "do $$ begin perform count(*) from numbers; perform 1 / 0; end $$",
        "do $$ begin raise exception 'so'; end $$",
        "begin; insert into written (n) values (8); select 1 / 0; select 9",
    ] {
        fail(client, sql);
        let _ = client.batch_execute("rollback");
    }
    fail(client, "begin; select 1 / 0");
    fail(client, "select 'in a failed transaction'");
    ask(client, "rollback");
    ask(client, "set statement_timeout = '80ms'");
    fail(client, "select pg_sleep(5)");
    fail(client, "do $$ begin perform pg_sleep(5); end $$");
    fail(client, "select count(*) from numbers a, numbers b, numbers c");
    ask(client, "reset statement_timeout");
    let token = client.cancel_token();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        token.cancel_query(NoTls).unwrap();
    });
    fail(client, "select pg_sleep(20) as cancelled");
    canceller.join().unwrap();
    // Errors at each step of the extended protocol.
    assert!(client.query("select no_such_column", &[]).is_err());
    assert!(client.query("select 5 / $1::int", &[&0]).is_err());
    assert_eq!(client.query("select 6 / $1::int", &[&3]).unwrap().len(), 1);
    // A session that ends within a transaction.
    let mut other = cluster.connect().unwrap();
    let end = "begin; select 1 as left_open; select pg_terminate_backend(pg_backend_pid())";
    other.batch_execute(end).expect_err("it has ended");
}

/// Triggers, foreign keys, rules, data-modifying CTEs.
fn rewritten(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "insert into owners select n, 'owner ' || n from generate_series(1, 30) n",
            "insert into things select n, 1 + n % 30 from generate_series(1, 200) n",
            "update things set owner = 2 where owner = 1",
            "delete from owners where id = 5",
            "delete from owners where id = 6",
            "with deleted as (delete from things where id > 190 returning id),
                  noted as (insert into written (n) select id from deleted returning n)
             select count(*) from noted",
            "with recursive r(n) as (select 1 union all select n + 1 from r where n < 100)
             select sum(n) from r",
            "with a as materialized (select n from numbers where n < 10),
                  b as not materialized (select n from numbers where n < 20)
             select count(*) from a join b using (n)",
            "merge into numbers as target using (values (1, 'one'), (9001, 'more')) as v(n, t)
             on target.n = v.n when matched then update set t = v.t
             when not matched then insert (n, t) values (v.n, v.t)",
            "insert into numbers values (2, 'again') on conflict (n) do update set t = excluded.t",
            "create view numbered as select n, t from numbers where n < 100",
            "create table logged (n int, t text)",
            "create rule numbered_insert as on insert to numbered
             do instead (insert into logged values (new.n, new.t); insert into written (n) values (new.n))",
            "create rule written_also as on delete to written do also select count(*) from logged",
            "insert into numbered values (4711, 'by rule')",
            "delete from written where n = 4711",
            "select n from numbers where n in (1, 2, 3) union select 4 order by 1",
            "select * from numbers where n = any (array[1, 2, 3, 4])",
            "values (1, 'a'), (2, 'b')",
            "table owners",
            "select n, t from numbers where n < 5 for update",
            "select grouping(n % 2, n % 3), count(*) from numbers group by rollup (n % 2, n % 3)",
            "select row_number() over (partition by n % 5 order by t), n from numbers where n < 60",
            "select lo_unlink(lo_from_bytea(0, 'some bytes'))",
        ],
    );
}

/// Lists, parameters between constants, and constants in utility statements: which parts a text replaces, and
/// with which number.
fn lists(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "select n from numbers where n in (1, 2, 3)",
            "select n from numbers where n in (1, 2, 3, 4, 5, 6, 7)",
            "select n from numbers where n in (1, 2, 3) and t in ('a', 'b') and n = 9",
            "select n from numbers where n in (1)",
            "select n from numbers where n in (-1, - 2, 3) limit 4 offset 5",
            "select n from numbers where n in (1::int, 2::int, 3)",
            "select n from numbers where n in (inlined(1), inlined(2), 3)",
            "select n from numbers where (n, t) in ((1, 'a'), (2, 'b'))",
            "select n from numbers where n in (1, 2 /* within ) */, 3) /* ( after */ and n > 5 -- the end",
            "select n from numbers where n not in (1, 2) and n in ((3), (4))",
            "select array[1, 2, 3, 4], array['a', 'b'], 7, '{1, 2}'::int[], array[1, 2]::bigint[]",
            "select (array[1, 2, 3])[2], (array[1, 2, 3])[1:2], row(1, 2, 'x')",
            "select null in (1, 2), 1 in (null, 2), coalesce(null, 1, 2), greatest(1, 2, 3)",
            "select E'\\x41', U&'\\0041', b'101', x'1F', $$dollars$$, $q$tag$q$, 1.5e-3, 'ö' in ('ä', 'ü')",
            "values (1, 'a'), (2, 'b'), (3, 'c')",
            "select 1 in (2, 3); select 4 as after, 5 in (6, 7, 8); select 9",
            "create procedure of_two(i int, inout o int) language plpgsql as
             $$ begin o := i; perform count(*) from numbers where n in (1, 2, 3); end $$",
            "call of_two(1, 2)",
            "call of_two(3, 4)",
            "do $$ begin perform 1 in (1, 2, 3); end $$",
            "begin isolation level serializable read only deferrable",
            "savepoint one",
            "release one",
            "savepoint two",
            "rollback to two",
            "declare listed cursor for select n from numbers where n in (1, 2, 3, 4)",
            "fetch 1 from listed",
            "move forward 2 in listed",
            "close listed",
            "end",
            "set search_path = public, pg_catalog",
            "set search_path to public",
            "set time zone 'UTC'",
            "set work_mem = 9000",
            "explain (costs off) select n from numbers where n in (1, 2, 3)",
            "explain (analyze, costs off, timing off) create table explained_too as select 1 as a, 2 as b",
            "create table listed_as as select n, 'x' as x from numbers where n in (1, 2, 3)",
            "create view listed_view as select n, 'y' as y from numbers where n in (1, 2)",
            "create table ranged (a int, b text default 'b', c int check (c > 7)) partition by range (a)",
            "create table ranged_1 partition of ranged for values from (1) to (10)",
            "alter table ranged add column d int default 42",
            "create index on numbers (n) where n in (1, 2, 3)",
            "create sequence counted start 5 increment 3",
            "alter sequence counted restart 7",
            "create function listed(i int default 5) returns boolean language sql
             as 'select i in (1, 2, 3); select i in (4, 5)'",
            "select listed(), listed(7)",
            "prepare of_list (int) as select $1 in (1, 2, 3)",
            "execute of_list (1)",
            "execute of_list (2)",
            "deallocate prepare of_list",
            "prepare without as select 1 + 2",
            "execute without",
            "deallocate without",
        ],
    );
    for sql in [
        "select $1::int + 1, $2::int in (1, 2, 3)",
        "select $2::int, 5, $1::int, 6",
        "select n from numbers where n in ($1, $2, 3) and n <> 9",
        "select n from numbers where n in ($1::int, $2::int) and n <> 10",
        "select n from numbers where n = $1 and n in (1, 2) and n < $2 and t <> 'x'",
        "select n from numbers where n in ($1, $1, $2) and n in (7, 8)",
    ] {
        client.query(sql, &[&1, &2]).unwrap();
    }
}

fn prepared(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "prepare p (int) as select n, t from numbers where n = $1",
            "execute p (1)",
            "execute p (2)",
            "execute p (3)",
            "execute p (4)",
            "execute p (5)",
            "execute p (6)",
            "execute p (7)",
            "explain analyze execute p (3)",
            "create table executed as execute p (9)",
            "prepare q as insert into written (n) values (77)",
            "execute q",
            "execute q",
            "deallocate p",
            "deallocate all",
        ],
    );
    let statement = client.prepare("select t from numbers where n = $1").unwrap();
    for n in 1..20 {
        assert_eq!(client.query(&statement, &[&n]).unwrap().len(), 1);
    }
    // A change to its table causes a new plan.
    ask(client, "alter table numbers add column another int");
    assert_eq!(client.query(&statement, &[&3]).unwrap().len(), 1);
    for n in 1..4i64 {
        client.query("select $1::bigint + 1", &[&n]).unwrap();
        client.execute("update numbers set another = 3 where n < $1::bigint", &[&n]).unwrap();
    }
}

/// Temporary tables larger than their buffers, and files for sorts and hashes.
fn temporary(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "set temp_buffers = 100",
            "create temp table short_lived (n int, t text)",
            "insert into short_lived select n, repeat('x', 100) from generate_series(1, 20000) n",
            "create index on short_lived (n)",
            "update short_lived set t = 'y' where n % 3 = 0",
            "select count(*), max(t) from short_lived",
            "select count(*), max(t) from short_lived where n > 5",
            "analyze short_lived",
            "set work_mem = '64kB'",
            "select n from generate_series(1, 50000) n order by n desc offset 49999",
            "select count(*) from short_lived a join short_lived b using (n)",
            "select count(*) from (select distinct t, n from short_lived) d",
            "declare big cursor with hold for select * from short_lived",
            "fetch 10 from big",
            "close big",
            "drop table short_lived",
        ],
    );
}

fn parallel(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "set parallel_setup_cost = 0",
            "set parallel_tuple_cost = 0",
            "set min_parallel_table_scan_size = 0",
            "set max_parallel_workers_per_gather = 2",
            "select sum(abalance), count(*) from pgbench_accounts",
            "select sum(abalance), count(*) from pgbench_accounts",
            "select a.bid, count(*) from pgbench_accounts a join numbers on aid = n group by 1",
            "set work_mem = '64kB'",
            "select aid from pgbench_accounts order by abalance, aid offset 199999",
            "create table in_parallel as select aid, bid from pgbench_accounts where aid % 3 = 0",
            "create index on pgbench_accounts (abalance, aid)",
            "vacuum (parallel 2) pgbench_accounts",
            "explain (analyze, costs off) select count(*) from pgbench_accounts where aid % 7 = 1",
        ],
    );
    fail(client, "select sum(1 / (aid % 5000)) from pgbench_accounts");
}

/// With JIT compilation, if the server supports it.
fn compiled(_: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "set jit = on",
            "set jit_above_cost = 0",
            "select sum(n * 2 + 1) from numbers where n % 3 = 1",
            "set jit_inline_above_cost = 0",
            "set jit_optimize_above_cost = 0",
            "select sum(n * 3 + 2) from numbers where n % 5 = 1",
            "select sum(n * 3 + 4) from numbers where n % 7 = 1",
            "set max_parallel_workers_per_gather = 2",
            "set parallel_setup_cost = 0",
            "set parallel_tuple_cost = 0",
            "set min_parallel_table_scan_size = 0",
            "select sum(abalance * 2), max(aid + 1) from pgbench_accounts where aid % 11 = 1",
        ],
    );
}

/// Other roles and another database.
fn roles(cluster: &Cluster, client: &mut Client) {
    each(
        client,
        &[
            "create role somebody login",
            "create role other",
            "grant all on written, owners to somebody, other",
            "create function as_owner() returns bigint language plpgsql security definer as
             $$ begin return (select count(*) from owners); end $$",
            "select as_owner()",
            "set role somebody",
            "select as_owner()",
            "select count(*) from owners",
            "set role other",
            "select count(*) from owners",
            "insert into written (n) values (3)",
            "reset role",
            "set session authorization somebody",
            "select count(*) from owners",
            "reset session authorization",
            "create database elsewhere",
        ],
    );
    let mut config = cluster.config();
    let mut other = config.user("somebody").dbname("elsewhere").connect(NoTls).unwrap();
    each(
        &mut other,
        &["select count(*) from pg_class", "select count(*) from pg_class", "select 1"],
    );
    fail(&mut other, "create table refused (n int)");
}

/// Many distinct statements, in both protocols, some twice.
fn distinct(_: &Cluster, client: &mut Client) {
    for number in 0..DISTINCT {
        let sql = distinct_statement(number, 1);
        if number % 5 == 0 {
            client.query(&sql, &[]).unwrap();
        } else {
            ask(client, &sql);
        }
        if number % 3 == 0 {
            ask(client, &distinct_statement(number, 2));
        }
    }
}

/// A distinct statement for each number; the constant makes no difference.
pub fn distinct_statement(number: u32, constant: u32) -> String {
    let signs: String =
        (0..16).map(|bit| if number >> bit & 1 == 1 { " + 1" } else { " - 1" }).collect();
    format!("select {constant}{signs}")
}
