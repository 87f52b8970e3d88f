-- highest bid: in each ten seconds
select b.auction, b.price, b.bidder, b.date_time, b.extra
from bid b
join (
    select max(price) as most, date_bin(interval '10 seconds', date_time, timestamp '2024-01-01') as begins
    from bid
    group by 2
) m on b.price = m.most
where b.date_time >= m.begins and b.date_time < m.begins + interval '10 seconds'
