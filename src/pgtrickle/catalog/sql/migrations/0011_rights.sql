-- 0011_rights: which rights a stream table lives by, and fewer ways to act with the rights of the sidecar.
-- `pgt_rights` has, for each stream table, what its query reads: as the owner of the stream table where
-- `through` is 0, else as the owner of that view. `last_proof` is the proof of ownership used last;
-- `reached_classes` and `reached_objects` are what its query relies on besides relations.

create table pgtrickle.pgt_rights (
    pgt_id bigint not null references pgtrickle.pgt_stream_tables on delete cascade,
    through oid not null,
    relation_id oid not null,
    columns smallint[] not null,
    primary key (pgt_id, through, relation_id)
);

alter table pgtrickle.pgt_stream_tables
    add column last_proof text,
    add column reached_classes oid[] not null default '{}',
    add column reached_objects oid[] not null default '{}';

-- a reason may quote a value from a row
revoke select (reason) on pgtrickle.pgt_refresh_history from public;

-- these took SQL from their caller
drop function if exists pgtrickle.register(oid, oid, jsonb, jsonb, text[]);
drop function if exists pgtrickle.change_query(oid, oid, jsonb, text[]);

-- these decided by the role of the session, which code of others in it shares
drop function if exists pgtrickle.asking_role();
drop function if exists pgtrickle.check_may_drain();
drop function if exists pgtrickle.check_may_gate(oid);

-- what callers may have left there is found out anew
do $$
begin
    if exists (select from pgtrickle.pgt_stream_tables) then
        update pgtrickle.pgt_stream_tables s set
            match_columns = coalesce(pgtrickle.match_columns(s.pgt_relid), s.match_columns),
            settings = (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(s.settings)
                where key in ('TimeZone', 'DateStyle', 'IntervalStyle', 'lc_monetary', 'lc_numeric', 'lc_time',
                    'bytea_output', 'extra_float_digits', 'default_text_search_config', 'xmlbinary', 'xmloption',
                    'timezone_abbreviations'));
    end if;
end
$$;
