-- 0002_copies: sources without triggers, whose rows are compared with a copy of ours.
-- `version` is that of the materialized view whose rows the copy holds; `filled_at` is null until the copy
-- has been filled for the first time.

alter table pgtrickle.pgt_sources
    add column version text,
    add column filled_at timestamptz,
    drop constraint pgt_sources_trigger_level_check,
    add constraint pgt_sources_trigger_level_check check (trigger_level in ('statement', 'row', 'none'));

alter table pgtrickle.pgt_dependencies
    drop constraint pgt_dependencies_source_type_check,
    add constraint pgt_dependencies_source_type_check check (source_type in
        ('table', 'stream_table', 'materialized_view', 'foreign_table', 'view', 'function'));
