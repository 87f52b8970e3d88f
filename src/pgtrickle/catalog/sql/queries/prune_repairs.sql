-- prune_repairs: keep the last `kept` repairs of each stream table, and none older than `kept_for`. The last one
-- of each is always kept.
delete from pgtrickle.pgt_repairs r
using (
    select repair_id, row_number() over (partition by pgt_id order by repair_id desc) as age
    from pgtrickle.pgt_repairs
) ranked
where ranked.repair_id = r.repair_id and ranked.age > 1
    and (ranked.age > %(kept)s or r.found_at < now() - %(kept_for)s::interval)
