-- analyse_query: a query as a temporary view, the schema and the name that its stream table would get, and the
-- settings that give it its meaning. Run as its author, in a transaction that is rolled back.
select v.id::bigint, n.parts[1], n.parts[2], pgtrickle_internal.session_settings()
from pgtrickle_internal.view_of(%(query)s) v(id),
    pgtrickle_internal.check_text(v.id),
    pgtrickle_internal.new_name(%(name)s) n(parts)
