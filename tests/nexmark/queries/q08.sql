-- monitor new users: people who open an auction within the ten seconds in which they came
select p.id, p.name, p.begins
from (
    select id, name, date_bin(interval '10 seconds', date_time, timestamp '2024-01-01') as begins
    from person
    group by 1, 2, 3
) p
join (
    select seller, date_bin(interval '10 seconds', date_time, timestamp '2024-01-01') as begins
    from auction
    group by 1, 2
) a on p.id = a.seller and p.begins = a.begins
