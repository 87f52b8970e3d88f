-- 0014_author_path: the search_path of the session that defined a stream table, as the schemas it led to.
-- When the query is analysed again, functions are checked against it; nothing is ever looked up along it.

alter table pgtrickle.pgt_stream_tables add column author_path name[] not null default '{public}';

-- for those that are there already, the path that a role has unless it was changed
update pgtrickle.pgt_stream_tables s set author_path = array(
    select n.nspname from pg_catalog.pg_namespace n
    where n.nspname = pg_catalog.pg_get_userbyid(s.pgt_owner)
    union all select 'public');
