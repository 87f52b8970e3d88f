-- 0016_more_ground: configurations of text search are part of the ground, and so are the names that a refused query reads.

alter table pgtrickle.pgt_ground drop constraint pgt_ground_kind_check;
alter table pgtrickle.pgt_ground add constraint pgt_ground_kind_check
    check (kind in ('itself', 'source', 'view', 'function', 'type', 'family', 'collation', 'schema',
        'names', 'conversions', 'text_search', 'roles', 'bindings'));
