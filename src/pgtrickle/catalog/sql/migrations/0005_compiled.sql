-- 0005_compiled: compiled queries, shared by all sidecars of the database.
-- `payload` decides which SQL a sidecar runs, so only the sidecar's role may read or write it.
-- `follows_clock` tells whether time alone changes the result; null until it is known.

create table pgtrickle.pgt_caches (
    is_only boolean primary key default true check (is_only),
    installation uuid not null default gen_random_uuid(),
    generation bigint not null default 0,
    cleared_at timestamptz
);
insert into pgtrickle.pgt_caches default values;

create table pgtrickle.pgt_compiled (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    code_version text not null,
    fingerprint text not null,
    generation bigint not null,
    payload bytea not null,
    compiled_at timestamptz not null default now(),
    primary key (pgt_id, code_version)
);
-- it is compressed already
alter table pgtrickle.pgt_compiled alter column payload set storage external;

alter table pgtrickle.pgt_stream_tables add column follows_clock boolean;

revoke all on pgtrickle.pgt_caches, pgtrickle.pgt_compiled from public;
grant select on pgtrickle.pgt_caches to public;
grant select (pgt_id, code_version, fingerprint, generation, compiled_at) on pgtrickle.pgt_compiled to public;
grant select (follows_clock) on pgtrickle.pgt_stream_tables to public;
