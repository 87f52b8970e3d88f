-- pages: how many pages the longest table has, among a table and all that inherit from it.
-- Parameter: relation, the oid of the table.  Reads: pg_inherits, sizes of files.
with recursive family(relation) as (
    select %(relation)s::oid
    union
    select child.inhrelid
    from family
    join pg_catalog.pg_inherits child on child.inhparent = family.relation
)
select coalesce(max(pg_catalog.pg_relation_size(relation)), 0)
       / pg_catalog.current_setting('block_size')::bigint
from family
