-- 0032_state_behind: full refreshes that leave the state of a stream table as it was.

-- state_is_behind: whether the rows were written without the state beside them, which then has to be computed again before
-- a change can be followed.
alter table pgtrickle.pgt_stream_tables
    add column if not exists state_is_behind boolean not null default false;
-- in the mode FULL no state is kept up to date
update pgtrickle.pgt_stream_tables set state_is_behind = true where refresh_mode = 'FULL' and is_populated;
grant select (state_is_behind) on pgtrickle.pgt_stream_tables to public;

-- strategy 'with_state': all rows by PostgreSQL alone, and their state; 'recompute' is without the state.
alter table pgtrickle.pgt_refresh_history
    drop constraint if exists pgt_refresh_history_strategy_check,
    add constraint pgt_refresh_history_strategy_check
        check (strategy in ('delta', 'load', 'recompute', 'with_state'));
