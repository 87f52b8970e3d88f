-- 0007_ground: everything in the system catalogs that a stream table relies on.

-- One row for each object. `version` changes whenever PostgreSQL writes the object's catalog rows, for whatever
-- reason. `content` is what counts.
create table pgtrickle.pgt_ground (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    kind text not null,
    object_id oid not null,
    detail text not null default '',
    name text not null,
    version bigint,
    content jsonb not null default '{}',
    primary key (pgt_id, kind, object_id, detail),
    check (kind in ('itself', 'source', 'view', 'function', 'type', 'family', 'collation', 'schema',
        'names', 'conversions', 'roles'))
);
create index on pgtrickle.pgt_ground (object_id);
create index on pgtrickle.pgt_ground (kind, version) where kind in ('roles', 'conversions');
grant select on pgtrickle.pgt_ground to public;

-- `ground_generation` counts how often the query was analysed: what was compiled before is out of date.
-- `ground_error` says why the stream table cannot be refreshed until something below it changes again.
alter table pgtrickle.pgt_stream_tables
    add column ground_generation bigint not null default 0,
    add column ground_error text;
grant select (ground_generation) on pgtrickle.pgt_stream_tables to public;
