-- 0006_costs: what the cost model learns from. `change_row_count` is how many change rows waited;
-- `strategy` how the rows came about: of the change ('delta'), of all rows by the same program ('load'),
-- or by PostgreSQL alone ('recompute').

alter table pgtrickle.pgt_refresh_history
    add column change_row_count bigint,
    add column strategy text,
    add constraint pgt_refresh_history_strategy_check check (strategy in ('delta', 'load', 'recompute'));

grant select (change_row_count, strategy) on pgtrickle.pgt_refresh_history to public;
