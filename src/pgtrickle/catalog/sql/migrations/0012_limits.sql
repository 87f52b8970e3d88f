-- limits: how long a refresh of a stream table may take.

-- refresh_timeout: in seconds; 0 is without limit, null is what the sidecar has as its default.
alter table pgtrickle.pgt_stream_tables add column refresh_timeout double precision
    constraint pgt_stream_tables_refresh_timeout_check check (refresh_timeout >= 0);

-- these have one more argument now; both forms side by side would make calls ambiguous
drop function if exists pgtrickle.create_stream_table(
    text, text, text, text, boolean, text, text, text, boolean, boolean);
drop function if exists pgtrickle.create_stream_table_if_not_exists(
    text, text, text, text, boolean, text, text, text, boolean, boolean);
drop function if exists pgtrickle.create_or_replace_stream_table(
    text, text, text, text, boolean, text, text, text, boolean, boolean);
drop function if exists pgtrickle.alter_stream_table(
    text, text, text, text, text, text, boolean, boolean, text, text, text);
drop function if exists pgtrickle.options(text, text, boolean, text, text, text, boolean, boolean, text);
