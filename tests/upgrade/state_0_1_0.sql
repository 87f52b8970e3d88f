-- What version 0.1.0 keeps for the stream tables of the shop once they are loaded, written by pg_dump.

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE FUNCTION pgtrickle_state.hash_1(text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hash_record_extended(ROW($1), (0)::bigint);

ALTER FUNCTION pgtrickle_state.hash_1(text) OWNER TO trickle;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE UNLOGGED TABLE pgtrickle_state.staging_1 (
    run bigint,
    part integer,
    attempt bigint,
    k0 text,
    count bigint,
    s0 bigint,
    s1 numeric(38,0)
)
WITH (autovacuum_enabled=off);

ALTER TABLE pgtrickle_state.staging_1 OWNER TO trickle;

CREATE UNLOGGED TABLE pgtrickle_state.staging_2 (
    run bigint,
    part integer,
    attempt bigint,
    f0 text,
    f1 integer,
    f2 integer,
    weight bigint
)
WITH (autovacuum_enabled=off);

ALTER TABLE pgtrickle_state.staging_2 OWNER TO trickle;

CREATE UNLOGGED TABLE pgtrickle_state.staging_3 (
    run bigint,
    part integer,
    attempt bigint,
    count bigint,
    s0 bigint,
    s0_removed bigint
)
WITH (autovacuum_enabled=off);

ALTER TABLE pgtrickle_state.staging_3 OWNER TO trickle;

CREATE TABLE pgtrickle_state.state_1 (
    k0 text,
    count bigint,
    s0 bigint,
    s1 numeric
)
WITH (fillfactor='80');

ALTER TABLE pgtrickle_state.state_1 OWNER TO trickle;

CREATE TABLE pgtrickle_state.state_3 (
    count bigint,
    s0 bigint
)
WITH (fillfactor='80');

ALTER TABLE pgtrickle_state.state_3 OWNER TO trickle;

INSERT INTO pgtrickle_state.state_1 VALUES ('r1', 7, 7, 70);
INSERT INTO pgtrickle_state.state_1 VALUES ('r0', 6, 6, 63);
INSERT INTO pgtrickle_state.state_1 VALUES ('r2', 7, 7, 77);

INSERT INTO pgtrickle_state.state_3 VALUES (3, 77);

CREATE INDEX state_1_key ON pgtrickle_state.state_1 USING btree (pgtrickle_state.hash_1(k0));
