-- average price for a category: of the winning bids
select q.category, avg(q.final) as average
from (
    select max(b.price) as final, a.category
    from auction a, bid b
    where a.id = b.auction and b.date_time between a.date_time and a.expires
    group by a.id, a.category
) q
group by q.category
