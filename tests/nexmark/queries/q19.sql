-- top bids: the ten highest of each auction
select auction, bidder, price, channel, url, date_time, extra, place
from (
    select *,
        row_number() over (
            partition by auction
            order by price desc, date_time, bidder, channel, url, extra
        ) as place
    from bid
) ranked
where place <= 10
