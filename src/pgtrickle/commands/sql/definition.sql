-- definition: what the compiler has to know about a stream table. Every role may run it.
select i.pgt_schema, i.pgt_name, i.defining_query, i.refresh_mode, s.settings,
    array(select d.source_relid::bigint from pgtrickle.pgt_dependencies d
        where d.pgt_id = s.pgt_id and d.source_type not in ('view', 'function') order by 1),
    array(select d.source_relid::bigint from pgtrickle.pgt_dependencies d
        where d.pgt_id = s.pgt_id and d.source_type = 'view' order by 1),
    s.auxiliary_results
from pgtrickle.stream_tables_info i join pgtrickle.pgt_stream_tables s on s.pgt_id = i.pgt_id
where s.pgt_id = %(id)s
