-- hot items: the auctions with most bids in each window of ten seconds that begins every two
with counted as (
    select b.auction, w.begins, count(*) as bids
    from bid b
    cross join lateral (
        select date_bin(interval '2 seconds', b.date_time, timestamp '2024-01-01') - n * interval '2 seconds'
            as begins
        from generate_series(0, 4) n
    ) w
    group by b.auction, w.begins
)
select c.auction, c.begins, c.bids
from counted c
join (select begins, max(bids) as most from counted group by begins) m
    on m.begins = c.begins and c.bids >= m.most
