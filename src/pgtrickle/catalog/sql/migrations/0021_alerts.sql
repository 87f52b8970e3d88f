-- 0021_alerts: alerts are kept for a while, for those who poll instead of listening. Every role can listen to alerts, so
-- every role may read them: `details` never hold a value of a row or the text of an error. There is no foreign key: the
-- alerts of a stream table outlive it.

create table if not exists pgtrickle.pgt_alerts (
    alert_id bigint generated always as identity primary key,
    at timestamptz not null,
    event text not null,
    pgt_id bigint,
    details jsonb not null
);
create index if not exists pgt_alerts_at_idx on pgtrickle.pgt_alerts (at);

-- What lasts now: which stream table is stale, or which source has large change buffers, and since when. `subject` is a
-- pgt_id or an OID. The rows are apart from pgt_stream_tables and pgt_sources, which a long refresh may have locked.
create table if not exists pgtrickle.pgt_episodes (
    event text not null check (event in ('stale_data', 'buffer_growth_warning')),
    subject bigint not null,
    since timestamptz not null default clock_timestamp(),
    primary key (event, subject)
);

revoke all on pgtrickle.pgt_alerts, pgtrickle.pgt_episodes from public;
grant select on pgtrickle.pgt_alerts, pgtrickle.pgt_episodes to public;

-- those who poll ask for the refreshes since a moment
create index if not exists pgt_refresh_history_end_time_idx on pgtrickle.pgt_refresh_history (end_time);

-- what `explain` says of a compiled query
alter table pgtrickle.pgt_compiled add column if not exists plan text;
grant select (plan) on pgtrickle.pgt_compiled to public;
