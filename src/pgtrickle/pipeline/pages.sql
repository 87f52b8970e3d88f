-- pages: how many pages the longest table has, among a table and all that inherit from it.
-- Parameters: relation, the oid of the table; copy, the name of what is read in its place, if anything is.  Reads: pg_inherits, sizes of files.
with recursive family(relation) as (
    select coalesce(%(copy)s::regclass, %(relation)s)::oid
    union
    select child.inhrelid
    from family
    join pg_catalog.pg_inherits child on child.inhparent = family.relation
)
select coalesce(max(pg_catalog.pg_relation_size(relation)), 0)
       / pg_catalog.current_setting('block_size')::bigint
from family
