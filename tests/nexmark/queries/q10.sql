-- log of bids, by day and minute
select auction, bidder, price, date_time, extra,
    to_char(date_time, 'yyyy-MM-dd') as day, to_char(date_time, 'HH24:MI') as minute
from bid
