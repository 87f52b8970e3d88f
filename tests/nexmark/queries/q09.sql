-- winning bids
select id, item_name, description, initial_bid, reserve, date_time, expires, seller, category,
    bidder, price, bid_date_time, bid_extra
from (
    select a.*, b.bidder, b.price, b.date_time as bid_date_time, b.extra as bid_extra,
        row_number() over (
            partition by a.id
            order by b.price desc nulls last, b.date_time, b.bidder, b.channel, b.url, b.extra
        ) as place
    from auction a
    join bid b on a.id = b.auction
    where b.date_time between a.date_time and a.expires
) ranked
where place <= 1
