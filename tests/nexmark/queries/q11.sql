-- user sessions: how many bids each made without a pause of three seconds
select bidder, session, count(*) as bids, min(date_time) as begins, max(date_time) as ends
from (
    select bidder, date_time, sum(starts) over (partition by bidder order by date_time) as session
    from (
        select bidder, date_time,
            case
                when date_time - lag(date_time) over (partition by bidder order by date_time)
                    <= interval '3 seconds' then 0
                else 1
            end as starts
        from bid
    ) paused
) numbered
group by bidder, session
