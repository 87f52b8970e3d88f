-- save_compiled: save the compiled query of a stream table for other sidecars, in place of an older one. Does
-- nothing if the stream table no longer exists or the caches have been cleared in the meantime.
insert into pgtrickle.pgt_compiled (pgt_id, code_version, fingerprint, generation, payload, plan)
select s.pgt_id, %(code_version)s, %(fingerprint)s, c.generation, %(payload)s, %(plan)s
from pgtrickle.pgt_stream_tables s, pgtrickle.pgt_caches c
where s.pgt_id = %(id)s and c.generation = %(generation)s
on conflict (pgt_id, code_version) do update
set fingerprint = excluded.fingerprint, generation = excluded.generation, payload = excluded.payload,
    plan = excluded.plan, compiled_at = excluded.compiled_at
