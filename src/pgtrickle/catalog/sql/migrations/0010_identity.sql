-- 0010_identity: which database this installation was made for, and what went wrong with stream tables.
-- A dump, a clone or an upgraded server carries our tables along, but not what the OIDs and transaction ids
-- in them mean. So the catalog stores what no copy can have: see identity.sql.

create table pgtrickle.pgt_identity (
    is_only boolean primary key default true check (is_only),
    system_identifier bigint,
    database_id oid not null,
    catalog_id oid not null,
    marker text not null,
    bound_at timestamptz not null default now()
);
grant select on pgtrickle.pgt_identity to public;

-- An installation older than this table may have been restored from a dump before it was upgraded. It was, if a
-- guard or the capture triggers of a source are on other OIDs than the catalog says, or if a frontier lies in
-- the future. No database has the OID 0, so it then counts as a copy.
insert into pgtrickle.pgt_identity (database_id, catalog_id, marker)
select case when exists (
            select from pgtrickle.pgt_stream_tables s
            where pg_snapshot_xmax(s.frontier) > pg_snapshot_xmax(pg_current_snapshot())
                or pg_snapshot_xmax(s.upstream_frontier) > pg_snapshot_xmax(pg_current_snapshot()))
        or exists (
            select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
            where p.pronamespace = 'pgtrickle'::regnamespace and p.proname = 'refuse_direct_write'
                and not exists (select from pgtrickle.pgt_stream_tables s where s.pgt_relid = t.tgrelid))
        or exists (
            select from pgtrickle.pgt_sources s
            join pg_proc p on p.pronamespace = 'pgtrickle_changes'::regnamespace
                and p.proname = format('capture_%s', s.source_relid)
            join pg_trigger t on t.tgfoid = p.oid
            where not exists (
                select from pg_trigger own where own.tgfoid = p.oid and own.tgrelid = s.source_relid))
    then 0 else d.oid end, v.tableoid, v.xmin::text
from pg_database d, pgtrickle.pgt_schema_version v
where d.datname = current_database() and v.version = 1;

-- What each stream table does when it no longer holds the rows that it should hold, and how often that was.
alter table pgtrickle.pgt_stream_tables
    add column on_divergence text not null default 'repair',
    add column repairs integer not null default 0,
    add column last_repair_at timestamptz,
    add constraint pgt_stream_tables_on_divergence_check check (on_divergence in ('repair', 'stop'));
grant select (on_divergence, repairs, last_repair_at) on pgtrickle.pgt_stream_tables to public;

-- The evidence of each self-repair. It holds rows, so only the view visible_repairs is for everybody.
create table pgtrickle.pgt_repairs (
    repair_id bigint generated always as identity primary key,
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    cause text not null check (cause in ('diverged', 'verified')),
    found_at timestamptz not null default clock_timestamp(),
    found_by text not null,
    reason text not null,
    problems text[] not null default '{}',
    unexpected text[],
    missing text[],
    repaired_at timestamptz
);
create index on pgtrickle.pgt_repairs (pgt_id, repair_id desc);
