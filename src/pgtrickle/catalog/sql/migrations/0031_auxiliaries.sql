-- 0031_auxiliaries: inner results of a query that are kept beside its stream table.

-- auxiliary_results: whether they are kept where a change would otherwise read a whole table, wherever possible, or never.
alter table pgtrickle.pgt_stream_tables
    add column if not exists auxiliary_results text not null default 'auto'
        constraint pgt_stream_tables_auxiliary_results_check check (auxiliary_results in ('auto', 'always', 'never'));
grant select (auxiliary_results) on pgtrickle.pgt_stream_tables to public;
