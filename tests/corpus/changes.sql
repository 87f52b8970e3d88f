-- Three windows of changes, separated by lines of dashes: half of the rows go; they return changed, with others; rows
-- collide and swap their keys.
delete from people where id % 2 = 0;
delete from teams where id % 2 = 1;
delete from events where id % 2 = 0;
delete from marks where coalesce(person, 0) % 2 = 0;
delete from things where id % 2 = 1;
delete from papers where id % 2 = 0;
delete from animals where id = 2;
delete from sales where id % 2 = 0;
----
insert into teams select n, 'team ' || n % 3, n % 4, n * 33.3, 'dark', date '2021-05-05' from generate_series(1, 7, 2) n;
insert into people
select n, (array['flo', 'ann', 'gus'])[1 + n % 3] || n % 7, n % 6, n * 1.5, date '1999-01-01' + n * 60, array['u1', 't0', null],
    jsonb_build_object('a', n % 4, 'b', jsonb_build_array(n), 'c', null), timestamptz '2024-02-01 12:00+00' + n * interval '1 day',
    n % 4 = 0, 'd' || n % 2
from generate_series(2, 30, 2) n;
insert into events
select n, n % 9, timestamp '2024-03-02' + (n * 53 % 200) * interval '15 minutes', (array['bid', 'view'])[1 + n % 2], n % 6 * 5,
    n % 3 * interval '1 minute', json_build_object('n', n % 4, 'list', json_build_array(n))
from generate_series(2, 60, 2) n;
insert into marks select n % 6, (array['art', 'math'])[1 + n % 2], n % 5, n % 8 / 4.0::double precision, n % 2 from generate_series(1, 20) n;
insert into marks select * from marks where score = 1;
insert into things(id, place, span, spans, addr, bits, flags, raw, uid, price, words, corner, corners, size, small, days, grid, link, mac)
select n, point(n % 2, 1), int4range(n % 3, 6), int4multirange(int4range(n, n + 3)), ('192.168.1.' || n)::inet, B'1010', B'1',
    '\x01', '11111111-0000-0000-0000-000000000000', '2.5', 'word1 more0', row(n, 0)::spot,
    array[row(0, n)::spot], 3, 2, '[2024-01-03,2024-01-04]', '{{1,2},{3,4}}', n % 5, '08:00:2b:01:02:01'
from generate_series(1, 15, 2) n;
insert into papers select n, '<r a="5"><i>7</i></r>' from generate_series(2, 8, 2) n;
insert into animals values (2, 'hen', 2), (6, 'ant', 6);
insert into dogs values (6, 'ant', 6, 'toy');
insert into sales select n, (array['north', 'west'])[1 + n % 2], date '2024-01-04', n * 2 from generate_series(2, 20, 2) n;
----
update people set team = (team + 1) % 5, pay = pay + 0.75 where id % 3 = 0;
update people set info = info || '{"a": 9}', tags = tags || 'new'::text, active = not active where id % 4 = 1;
update people set id = 1000 - id where id between 5 and 9;
update teams set budget = budget * 2, title = 'moved' where id % 3 = 0;
update events set amount = amount + 1, at = at + interval '25 minutes' where person in (1, 2, 3);
update events set kind = 'ask', person = 4 where id % 7 = 0;
update marks set score = score - 1, weight = 0.25 where subject = 'math';
update things set link = id % 4, price = price * 2, size = 5 where id % 3 = 0;
update things set corner = row(7, 7)::spot, span = 'empty' where id % 5 = 0;
update papers set body = '<r a="1"/>' where id % 3 = 0;
update animals set legs = legs + 1 where name = 'hen';
update sales set region = 'north', amount = amount + 1 where id % 5 = 0;
delete from people where id in (11, 12);
insert into people(id, name, team) values (11, 'zoe', null), (12, 'ann1', 1);
