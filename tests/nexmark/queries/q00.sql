-- pass through
select auction, bidder, price, date_time, extra
from bid
