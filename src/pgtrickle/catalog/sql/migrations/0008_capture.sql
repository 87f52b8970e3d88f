-- 0008_capture: stream tables that wait until a source can have its triggers.
-- `columns` are those that the stream table needs captured; `reason` says why its rows are to be computed anew
-- once the triggers are there, where they were there before; `blockers` is what the last attempt ran into.
-- One row for each stream table and source, so that two who create at once do not wait for each other.

create table pgtrickle.pgt_waiting (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    source_relid oid not null,
    columns smallint[] not null default '{}',
    reason text,
    waiting_since timestamptz not null default clock_timestamp(),
    attempts integer not null default 1,
    retry_at timestamptz not null default clock_timestamp(),
    blockers text not null,
    primary key (pgt_id, source_relid)
);
grant select on pgtrickle.pgt_waiting to public;

-- What the trigger function of a source was written for: a digest of its text, and the ids of all that it uses.
-- Where these differ from what is there, something was removed or replaced.
alter table pgtrickle.pgt_sources
    add column body text,
    add column parts oid[];
