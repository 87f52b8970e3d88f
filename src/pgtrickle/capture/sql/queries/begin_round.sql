-- begin_round: begin to decode: no other session decodes until the transaction ends. The last column is the end of the log. Values are written as text that
-- can be read back exactly. Parameters: patience.  Locks: the advisory lock of decoding.
select set_config('lock_timeout', %(patience)s, true), set_config('datestyle', 'ISO, MDY', true),
    set_config('intervalstyle', 'postgres', true), set_config('bytea_output', 'hex', true),
    set_config('extra_float_digits', '1', true),
    pg_advisory_xact_lock(pgtrickle_internal.wal_lock(), 0), pg_current_wal_flush_lsn()::text
