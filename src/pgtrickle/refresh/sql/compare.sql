-- compare: the rows that a stream table has and its query does not give (+), and the other way round (-).
-- Bags: a row that comes twice must come twice. Columns without equality are compared as text. Long rows are shown
-- by their beginning.
with stored as (select {compared} from {table}),
answer as (select {compared} from ({query}) as answer ({named})),
differing as (
    select '+' as side, unexpected::text as line from (select * from stored except all select * from answer) unexpected
    union all
    select '-', missing::text from (select * from answer except all select * from stored) missing
)
select side, left(line, 1000) from differing order by line, side limit {shown}
