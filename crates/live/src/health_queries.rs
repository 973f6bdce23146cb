// SPDX-License-Identifier: PostgreSQL
//! Queries about the server's health that no wait shows: replication, WAL archiving, wraparound, sizes, bloat, indexes. Their
//! columns are those of [`crate::condition_queries::conditions`].
//!
//! They need no more than the role pg_monitor. What grows with the number of tables looks at the largest ones, as pg_class has
//! their pages, so it reads pg_class and pg_index, but no table and no file of most of them.

/// Of the whole server, each cheap enough to ask once a minute. Each is asked for by itself, so that one that the server refuses
/// hides no other.
pub(crate) const OF_SERVER: [&str; 5] = [
    "/* tally */
    select 'slot', slot_name::text, database::text, slot_type || case when wal_status = 'lost' then ', lost' when active then '' else ', inactive' end,
           0::int8,
           greatest(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
                                    restart_lsn), 0)::int8, null::float8
    from pg_replication_slots s
    -- since 17, a standby has copies of its primary's slots, which nobody uses there
    where (restart_lsn is not null or wal_status = 'lost')
      and not coalesce((to_jsonb(s) ->> 'synced')::bool, false)
    order by (wal_status is not distinct from 'lost') desc, 6 desc limit 10",
    "/* tally */
    select 'age', '', datname::text, '', age(datfrozenxid)::int8, mxid_age(datminmxid)::int8, null::float8
    from pg_database
    order by greatest(age(datfrozenxid), mxid_age(datminmxid)) desc limit 5",
    // The archiver repeats a file until it succeeds; without a command or a library, it tries nothing. The name of a file has the
    // timeline and twice 32 bits of its place in the WAL, from which on nothing was archived.
    "/* tally */
    with archiver as (
        select *, last_failed_time > coalesce(last_archived_time, '-infinity') as fails,
               pg_size_bytes(current_setting('wal_segment_size')) as segment,
               -- since 15 there may be a library instead
               current_setting('archive_command') = '' and coalesce(current_setting('archive_library', true), '') = '' as idle
        from pg_stat_archiver
    ), place as (
        select *, case when fails then last_failed_wal else last_archived_wal end as wal from archiver
    )
    select 'archiver', coalesce(last_archived_wal, ''), null::text,
           case when idle then 'not configured' when fails then 'fails: ' || last_failed_wal else 'archives' end,
           failed_count::int8,
           case when pg_is_in_recovery() or wal is null or wal !~ '^[0-9A-F]{24}' then 0
                else greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8 / segment * segment
                              - (('x' || substr(wal, 9, 8))::bit(32)::int8 * 4294967296
                                 + ('x' || substr(wal, 17, 8))::bit(32)::int8 * segment
                                 + case when fails then 0 else segment end), 0) end::int8,
           extract(epoch from clock_timestamp() - last_archived_time)::float8
    from place
    where current_setting('archive_mode') = 'always' or current_setting('archive_mode') = 'on' and not pg_is_in_recovery()",
    // Others than members of pg_read_all_stats see no states, and a base backup has no position.
    "/* tally */
    select 'replica', application_name, null::text,
           concat_ws(', ', sync_state, state, host(client_addr)), pid::int8,
           greatest(pg_wal_lsn_diff(case when pg_is_in_recovery() then coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
                                         else pg_current_wal_lsn() end, at), 0)::int8,
           extract(epoch from replay_lag)::float8
    from pg_stat_replication
    cross join lateral (select coalesce(replay_lsn, flush_lsn, write_lsn) as at) l
    where state is not null and at is not null
    order by 6 desc limit 20",
    // On an idle primary, the last transaction is old although nothing is missing.
    "/* tally */
    select 'receiver', coalesce(sender_host || ':' || sender_port, ''), null::text,
           case when pid is null then 'no WAL receiver' else coalesce(status, 'not visible') end, coalesce(pid, 0)::int8,
           greatest(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), 0)::int8,
           case when pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn() then 0
                else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) end::float8
    from (select) this left join pg_stat_wal_receiver on true
    where pg_is_in_recovery()",
];

/// Objects of the current database, asked for less often: they take tens of milliseconds with 10,000 tables.
pub(crate) const OBJECTS: [&str; 4] = [SIZES, BLOAT, UNUSED_INDEXES, DUPLICATE_INDEXES];

/// The database and its largest tables with their indexes and TOAST. A TOAST table has its owner's OID in its name.
const SIZES: &str = "/* tally */
    with largest as materialized (
        select case relkind when 't' then substring(relname from '^pg_toast_([0-9]+)$')::oid else oid end as oid, relpages
        from pg_class where relkind in ('r', 'm', 't') and relpersistence <> 't' and relpages > 0 order by relpages desc limit 40
    ), tables as materialized (
        select oid, sum(relpages) as relpages from largest where oid >= 16384 group by oid order by relpages desc limit 20
    )
    select 'size', '', current_database()::text, '', 0::int8, pg_database_size(current_database()), null::float8
    union all
    select 'size', case n.nspname when 'public' then '' else quote_ident(n.nspname) || '.' end || quote_ident(c.relname),
           current_database()::text, '', greatest(c.reltuples, 0)::int8, pg_total_relation_size(c.oid), null
    from tables t join pg_class c on c.oid = t.oid join pg_namespace n on n.oid = c.relnamespace";

/// Large tables with more pages than their rows need: rows by the last VACUUM or ANALYZE, each with its header, the average
/// widths of its columns, the padding before them and its line pointer. Behind a column of variable width, half of the padding
/// that may be there is assumed. A column of variable width whose statistics this role may not see leaves out its table.
const BLOAT: &str = "/* tally */
    with largest as materialized (
        select c.oid, n.nspname, c.relname, c.reltuples::float8 as rows, c.relpages::float8 as pages,
               current_setting('block_size')::float8 as block,
               coalesce((select option_value::float8 from pg_options_to_table(c.reloptions) where option_name = 'fillfactor'), 100)
               / 100 as filled
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'm') and c.relpersistence <> 't' and c.relpages >= 128 and c.reltuples >= 0 and c.oid >= 16384
        order by c.relpages desc limit 20
    ), columns as (
        select t.oid, w.*, coalesce(sum(w.width) over earlier, 0)::int as before,
               coalesce(bool_or(a.attlen < 0 or w.nulls > 0) over earlier, false) as varies
        from largest t
        join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        left join pg_stats s on s.schemaname = t.nspname and s.tablename = t.relname and s.attname = a.attname and not s.inherited
        cross join lateral (select coalesce(s.avg_width, case when a.attlen > 0 then a.attlen end)::float8 as width,
                                   coalesce(s.null_frac, 0)::float8 as nulls) k
        cross join lateral (select k.width, k.nulls,
                                   case when a.attlen < 0 and k.width < 127 then 1
                                        else case a.attalign when 'd' then 8 when 'i' then 4 when 's' then 2 else 1 end end as align) w
        window earlier as (partition by t.oid order by a.attnum rows between unbounded preceding and 1 preceding)
    ), widths as (
        select oid, count(*) as columns, bool_or(nulls > 0) as nulls, bool_or(width is null) as unknown,
               sum((1 - nulls) * (width + case when varies then (align - 1) / 2.0
                                               else mod(align - mod(before, align), align) end)) as width
        from columns group by oid
    ), needed as (
        select t.*, ceil(t.rows / greatest(floor(t.filled * (t.block - 24)
                    / (4 + 8 * ceil((23 + case when w.nulls then ceil(w.columns / 8.0) else 0 end) / 8.0)
                       + 8 * ceil(w.width / 8.0))), 1)) as needed
        from largest t join widths w on w.oid = t.oid
        where not w.unknown and w.width is not null
    )
    select 'bloat', case nspname when 'public' then '' else quote_ident(nspname) || '.' end || quote_ident(relname),
           current_database()::text, '', (pages * block)::int8, ((pages - needed) * block)::int8,
           extract(epoch from clock_timestamp() - greatest(pg_stat_get_last_vacuum_time(oid), pg_stat_get_last_autovacuum_time(oid),
                                                           pg_stat_get_last_analyze_time(oid), pg_stat_get_last_autoanalyze_time(oid)))::float8
    from needed
    where pages - needed >= 128 and pages - needed >= 0.2 * pages
    order by 6 desc limit 20";

/// Large indexes that no scan has used since the statistics began, or since their creation if that was later, and that enforce
/// nothing. A crash empties all statistics, which shows in those that have a time of reset from the start.
const UNUSED_INDEXES: &str = "/* tally */
    with candidates as materialized (
        select i.oid, i.relname, i.relnamespace, i.relpages, x.indrelid
        from pg_class i join pg_index x on x.indexrelid = i.oid
        where i.relkind = 'i' and i.relpersistence <> 't' and i.relpages >= 128 and i.oid >= 16384 and not i.relispartition
          and x.indisvalid and not x.indisunique and not x.indisprimary and not x.indisexclusion and not x.indisreplident
          and not pg_is_in_recovery()
        order by i.relpages desc limit 200
    ), since as (
        select greatest((select stats_reset from pg_stat_database where datname = current_database()),
                        least((select stats_reset from pg_stat_bgwriter), (select stats_reset from pg_stat_archiver),
                              (select stats_reset from pg_stat_wal))) as began
    )
    select 'unused-index', case n.nspname when 'public' then '' else quote_ident(n.nspname) || '.' end || quote_ident(i.relname),
           current_database()::text, c.relname::text, 0::int8, i.relpages::int8 * current_setting('block_size')::int8,
           extract(epoch from clock_timestamp() - (select began from since))::float8
    from candidates i join pg_namespace n on n.oid = i.relnamespace join pg_class c on c.oid = i.indrelid
    -- pg_constraint has no index on that column
    where pg_stat_get_numscans(i.oid) = 0 and i.oid not in (select conindid from pg_constraint)
    order by i.relpages desc limit 20";

/// Large indexes that have everything in common with another one of their table, which enforces at least as much.
const DUPLICATE_INDEXES: &str = "/* tally */
    with large as materialized (
        select x.*, i.relam from pg_class i join pg_index x on x.indexrelid = i.oid
        where i.relkind = 'i' and i.relpersistence <> 't' and i.relpages >= 128 and i.oid >= 16384 and not i.relispartition
          and x.indisvalid
        order by i.relpages desc limit 1000
    ), alike as materialized (
        select array_agg(indexrelid) as ids
        from large
        group by indrelid, relam, indnkeyatts, indkey::text, indclass::text, indcollation::text, indoption::text,
                 case when indexprs is null then '' else pg_get_expr(indexprs, indrelid) end,
                 case when indpred is null then '' else pg_get_expr(indpred, indrelid) end
        having count(*) > 1
    ), members as (
        select ids, x.indexrelid, x.indrelid, x.indisunique, x.indisreplident,
               x.indexrelid in (select conindid from pg_constraint) as enforces,
               row_number() over (partition by ids order by x.indexrelid in (select conindid from pg_constraint) desc,
                                  x.indisreplident desc, x.indisunique desc, x.indexrelid) as place
        from alike join large x on x.indexrelid = any(ids)
    )
    select 'duplicate-index',
           case n.nspname when 'public' then '' else quote_ident(n.nspname) || '.' end || quote_ident(i.relname),
           current_database()::text, c.relname || ', like ' || quote_ident(k.relname),
           pg_stat_get_numscans(i.oid)::int8, i.relpages::int8 * current_setting('block_size')::int8, null::float8
    from members m join members kept on kept.ids = m.ids and kept.place = 1
    join pg_class i on i.oid = m.indexrelid join pg_class k on k.oid = kept.indexrelid
    join pg_class c on c.oid = m.indrelid join pg_namespace n on n.oid = i.relnamespace
    where m.place > 1 and not m.enforces and not m.indisreplident and (kept.indisunique or not m.indisunique)
    order by i.relpages desc limit 20";
