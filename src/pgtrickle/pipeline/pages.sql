-- pages: how many pages the longest table has, among a table and all that inherit from it; how many all of them
-- have; and whether any of them has values that are stored apart from their rows.
-- Parameters: relation, the oid of the table; copy, the name of what is read in its place, if anything is.  Reads: pg_inherits, pg_class, sizes of files.
with recursive family(relation) as (
    select coalesce(%(copy)s::regclass, %(relation)s)::oid
    union
    select child.inhrelid
    from family
    join pg_catalog.pg_inherits child on child.inhparent = family.relation
),
sizes as (
    select
        pg_catalog.pg_relation_size(family.relation)
            / pg_catalog.current_setting('block_size')::bigint as pages,
        pg_catalog.pg_relation_size(nullif(c.reltoastrelid, 0)) > 0 as has_large_values
    from family
    join pg_catalog.pg_class c on c.oid = family.relation
)
select
    coalesce(max(pages), 0),
    coalesce(sum(pages), 0)::bigint,
    coalesce(bool_or(has_large_values), false)
from sizes
