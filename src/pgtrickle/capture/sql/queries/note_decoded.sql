-- note_decoded: record which transactions wrote to which sources, as their triggers would have done.
-- Parameters: xids, sources, moments (microseconds since 2000).  Writes: pgt_decoded and the touched tables.
with decoded as (
    select d.xid::xid8 as xid, d.source::oid as source,
        timestamptz '2000-01-01 00:00:00+00' + d.moment * interval '1 microsecond' as moment
    from unnest(%(xids)s::text[], %(sources)s::bigint[], %(moments)s::bigint[]) d(xid, source, moment)
), noted as (
    insert into pgtrickle.pgt_decoded (source_relid, xid) select source, xid from decoded
), even as (
    insert into pgtrickle_changes.touched_0 (xid, source, touched_at)
    select xid, source, moment from decoded where pgtrickle_internal.side_written() = 0
)
insert into pgtrickle_changes.touched_1 (xid, source, touched_at)
select xid, source, moment from decoded where pgtrickle_internal.side_written() = 1
