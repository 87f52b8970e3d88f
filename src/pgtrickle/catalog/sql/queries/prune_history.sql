-- prune_history: keep the last `kept` refreshes of each stream table, and none older than `kept_for`. The last one
-- of each is always kept.
delete from pgtrickle.pgt_refresh_history h
using (
    select refresh_id, row_number() over (partition by pgt_id order by refresh_id desc) as age
    from pgtrickle.pgt_refresh_history
) ranked
where ranked.refresh_id = h.refresh_id and ranked.age > 1
    and (ranked.age > %(kept)s or h.end_time < now() - %(kept_for)s::interval)
