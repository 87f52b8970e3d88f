-- average selling price by seller: over each auction that was won and the ten before it
select
    w.seller,
    w.auction,
    avg(w.final) over (
        partition by w.seller
        order by w.expires, w.auction
        rows between 10 preceding and current row
    ) as average
from (
    select a.id as auction, a.seller, a.expires, max(b.price) as final
    from auction a
    join bid b on a.id = b.auction and b.date_time between a.date_time and a.expires
    group by a.id, a.seller, a.expires
) w
