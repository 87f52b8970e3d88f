-- The first rows of the corpus: few, with duplicates, nulls and ties.
insert into teams
select n, (array['red', 'blue', 'green', 'blue', null])[1 + n % 5], nullif(n / 2, 0), n * 100.50,
    (array['light', 'middle', 'dark', null]::shade[])[1 + n % 4], date '2020-01-01' + n * 40
from generate_series(1, 8) n;

insert into people
select n, (array['ann', 'bob', 'cid', 'dee', 'eve'])[1 + n % 5] || n, nullif(n % 9, 0), nullif(n % 7, 0) * 10.25,
    date '1990-01-01' + n * 200, case n % 4 when 0 then null when 1 then '{}' else array['t' || n % 3, 'u' || n % 2] end,
    case n % 5 when 0 then null else jsonb_build_object('a', n % 3, 'b', jsonb_build_array(n % 2, n % 4, null), 'c',
        jsonb_build_object('d', 'x' || n % 3)) end,
    case n % 6 when 0 then null else timestamptz '2024-01-01 00:00+00' + n * interval '7 hours' end, nullif(n % 3, 1) = 2,
    'c' || n % 4
from generate_series(1, 24) n;

insert into events
select n, nullif(n % 13, 0), timestamp '2024-03-01' + (n * 37 % 300) * interval '10 minutes',
    (array['bid', 'ask', 'view', null])[1 + n % 4], nullif(n % 8, 3) * 5, n % 5 * interval '90 seconds',
    json_build_object('n', n % 3, 'list', json_build_array(n % 2, n % 3))
from generate_series(1, 48) n;

insert into marks
select nullif(n % 10, 0), (array['art', 'math', 'music', null])[1 + n % 4], nullif(n % 6, 5), n % 4 / 4.0::double precision, n % 3
from generate_series(1, 36) n;

insert into things
select n, point(n % 3, n % 4), box(point(0, 0), point(n % 3 + 1, n % 2 + 1)), int4range(n % 5, n % 5 + n % 3 + 1),
    int4multirange(int4range(n % 4, n % 4 + 2), int4range(n + 10, n + 12)), ('10.0.' || n % 3 || '.' || n || '/24')::inet,
    (n % 16)::bit(4), (n % 8)::bit(3)::varbit, decode(lpad(to_hex(n * 17 % 256), 2, '0') || '00ff', 'hex'),
    ('00000000-0000-0000-0000-00000000000' || n % 10)::uuid, (n % 4 * 1.5)::numeric::money,
    to_tsvector('simple', 'word' || n % 3 || ' and more' || n % 2),
    case n % 4 when 2 then null else row(n % 3, n)::spot end, array[row(n, 1)::spot, row(1, n % 2)::spot], n % 5 + 1, n % 3,
    daterange(date '2024-01-01' + n % 4, date '2024-01-05' + n % 6), array[[n % 3, 2], [3, n % 2]], nullif(n % 9, 0),
    ('08:00:2b:01:02:0' || n % 4)::macaddr
from generate_series(1, 16) n;

insert into papers
select n, case n % 4 when 3 then null else '<r a="' || n % 3 || '"><i>' || n || '</i><i>x</i></r>' end from generate_series(1, 12) n;

insert into animals values (1, 'worm', 0), (2, 'hen', 2), (2, 'hen', 2), (3, null, 4);
insert into dogs values (4, 'rex', 4, 'pug'), (5, 'ace', 4, null), (2, 'hen', 2, 'pug');

insert into sales
select n, (array['north', 'south', 'east', null])[1 + n % 4], date '2024-01-01' + n % 10, n % 7 * 12.5
from generate_series(1, 30) n;
