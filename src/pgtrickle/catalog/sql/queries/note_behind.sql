-- note_behind: record which stream tables began (`begun`) and ceased (`ended`) to fall behind.
-- Returns those that began and were not recorded before.  Locks: their rows, skipping those being refreshed.
with free as (
    select s.pgt_id from pgtrickle.pgt_stream_tables s
    where s.pgt_id = any (%(begun)s::bigint[]) and s.behind_since is null
        or s.pgt_id = any (%(ended)s::bigint[]) and s.behind_since is not null
    for no key update skip locked
), noted as (
    update pgtrickle.pgt_stream_tables s
    set behind_since = case when s.behind_since is null then clock_timestamp() end
    from free where s.pgt_id = free.pgt_id
    returning s.pgt_id, s.schedule, s.recent_ms, s.behind_since
)
select pgt_id, schedule, recent_ms from noted where behind_since is not null
