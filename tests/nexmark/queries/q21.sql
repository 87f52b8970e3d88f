-- channel ids: known ones by name, others from the address
select auction, bidder, price, channel,
    case lower(channel)
        when 'apple' then '0'
        when 'google' then '1'
        when 'facebook' then '2'
        when 'baidu' then '3'
        else substring(url from '(?:&|^)channel_id=([^&]*)')
    end as channel_id
from bid
where substring(url from '(?:&|^)channel_id=([^&]*)') is not null
    or lower(channel) in ('apple', 'google', 'facebook', 'baidu')
