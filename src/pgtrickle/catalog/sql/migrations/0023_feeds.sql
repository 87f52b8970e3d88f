-- 0023_feeds: what refreshes changed, kept for readers; requests for previews; sets of definitions.

-- keep_changes: how long the changes of a stream table are kept, and how many rows; null means that they are not.
alter table pgtrickle.pgt_stream_tables add column if not exists keep_changes text;
grant select (keep_changes) on pgtrickle.pgt_stream_tables to public;

-- Points are unique over all feeds, so that a point of a dropped feed is not a point of the next one.
create sequence if not exists pgtrickle.pgt_change_points;

-- One row for each feed. `columns` are those of the stream table when the feed was opened, in the order of the
-- columns of the table of kept changes. Everything after `kept_after` is kept. If there is a `reset_reason`, the next
-- refresh records a reset.
create table if not exists pgtrickle.pgt_feeds (
    pgt_id bigint primary key references pgtrickle.pgt_stream_tables on delete cascade,
    relation_id oid not null,
    columns text[] not null,
    kept_after bigint not null,
    reset_reason text
);
grant select on pgtrickle.pgt_feeds to public;

-- One row for each refresh that is kept. The rows themselves are in pgtrickle_state.kept_changes_<pgt_id>.
create table if not exists pgtrickle.pgt_batches (
    batch bigint primary key,
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    last_point bigint not null,
    row_count bigint not null,
    refreshed_at timestamptz not null,
    recorded_at timestamptz not null default clock_timestamp(),
    reset_reason text
);
create index if not exists pgt_batches_last_point on pgtrickle.pgt_batches (pgt_id, last_point);

alter table pgtrickle.pgt_refresh_requests drop constraint if exists pgt_refresh_requests_kind_check;
alter table pgtrickle.pgt_refresh_requests
    add constraint pgt_refresh_requests_kind_check check (kind in ('refresh', 'verify', 'preview'));

-- Which set of definitions created a stream table; a later version of the set without it drops it.
create table if not exists pgtrickle.pgt_definition_sets (
    pgt_id bigint primary key references pgtrickle.pgt_stream_tables on delete cascade,
    set_name text not null
);
grant select on pgtrickle.pgt_definition_sets to public;
