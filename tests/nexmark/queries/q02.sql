-- selection: bids on chosen auctions
select auction, price
from bid
where mod(auction, 13) = 0
