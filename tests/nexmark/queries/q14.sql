-- calculation: bids in a range of prices, with the time of day and a count of letters
select auction, bidder, 0.908 * price as price,
    case
        when extract(hour from date_time) between 8 and 18 then 'dayTime'
        when extract(hour from date_time) <= 6 or extract(hour from date_time) >= 20 then 'nightTime'
        else 'otherTime'
    end as bid_time_type,
    date_time, extra, length(extra) - length(replace(extra, 'c', '')) as c_counts
from bid
where 0.908 * price > 1000 and 0.908 * price < 50000000
