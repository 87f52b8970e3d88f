-- feeds_to_prune: the stream tables whose kept changes are too old or too many.
-- Reads: pgtrickle.pgt_feeds, pgtrickle.pgt_batches.  Locks: nothing.
select f.pgt_id
from pgtrickle.pgt_feeds f
join pgtrickle.pgt_stream_tables s on s.pgt_id = f.pgt_id
cross join lateral pgtrickle_internal.keep_bounds(s.keep_changes) k
cross join lateral (
    select min(b.recorded_at) as oldest, sum(b.row_count) as row_count from pgtrickle.pgt_batches b where b.pgt_id = f.pgt_id
) b
where b.row_count > k.most_rows or b.oldest < clock_timestamp() - k.seconds * interval '1 s'
order by f.pgt_id
