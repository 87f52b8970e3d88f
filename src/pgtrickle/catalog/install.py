"""Install, upgrade and uninstall pgtrickle in a database."""

from __future__ import annotations

from pgtrickle import __version__
from pgtrickle.catalog.functions import write_functions
from pgtrickle.catalog.identity import MIGRATIONS, VERSION, installation, other_version
from pgtrickle.catalog.remains import (
    SCHEMAS,
    Remains,
    act_as_owner,
    check_own,
    drop_schemas,
    ensure_state,
    set_aside,
    take_over,
)
from pgtrickle.model.errors import NotInstalled, PermissionDenied, StillInUse
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, DatabaseError, check_writable, sql, to_refusal
from pgtrickle.postgres.statements import load


def installed_version(connection: Connection) -> int | None:
    """The number of migrations that were applied; None if pgtrickle is not installed."""
    row = connection.execute("select to_regclass('pgtrickle.pgt_schema_version') is not null").fetchone()
    if row is None or not row[0]:
        return None
    row = connection.execute("select max(version) from pgtrickle.pgt_schema_version").fetchone()
    return int(row[0]) if row and row[0] is not None else None


def check_installed(connection: Connection) -> None:
    """Raise unless the catalog has the version that this code needs."""
    found = installed_version(connection)
    if found == VERSION:
        return
    if found is None:
        raise NotInstalled("pgtrickle is not installed in this database", hint="run `pgtrickle install`")
    raise other_version(found)


def check_original(connection: Connection) -> None:
    """Raise if this database is a copy: OIDs mean other objects there."""
    check_installed(connection)
    installation(connection).check()


def check_may_serve(connection: Connection) -> None:
    """Refuse to act as a sidecar without the rights for it, or if others could gain the sidecar's rights.

    A sidecar calls functions of the schema pgtrickle, and the owner of the schema can replace them. So a
    superuser must not serve the installation of another role.
    """
    if not may_serve(connection):
        raise rights_of_owner_missing(connection)


def may_serve(connection: Connection) -> bool:
    """Whether the role of a connection may do what a sidecar does: read the catalog and refresh."""
    row = connection.execute(
        "select pg_has_role(o.oid, 'USAGE') and (o.rolsuper or not c.rolsuper)"
        " from pg_namespace n join pg_roles o on o.oid = n.nspowner"
        " join pg_roles c on c.rolname = current_user where n.nspname = 'pgtrickle'"
    ).fetchone()
    return row is None or bool(row[0])


def is_installed_for(connection: Connection, trusted: int | None = None) -> bool:
    """Whether pgtrickle is installed, by the role `trusted` or by one whose rights this connection has.

    Reading a catalog that belongs to anybody else could run code of that role, so nothing in it is read.
    """
    owner = catalog_owner(connection)
    if owner is None or not (owner == trusted or may_serve(connection)):
        return False
    return installed_version(connection) is not None


def catalog_owner(connection: Connection) -> int | None:
    """The role that owns pgtrickle in this database; None if there is none."""
    row = connection.execute("select nspowner from pg_namespace where nspname = 'pgtrickle'").fetchone()
    return None if row is None else int(row[0])


def rights_of_owner_missing(connection: Connection) -> PermissionDenied:
    """The error for a role that needs the rights of the role that owns pgtrickle."""
    row = connection.execute(
        "select quote_ident(o.rolname), quote_ident(current_user), c.rolsuper"
        " from pg_namespace n join pg_roles o on o.oid = n.nspowner"
        " join pg_roles c on c.rolname = current_user where n.nspname = 'pgtrickle'"
    ).fetchone()
    assert row is not None
    owner, role, is_superuser = row
    if is_superuser:
        # the owner of the functions could replace them, and the superuser would run them
        return PermissionDenied(
            f"pgtrickle belongs to the role {owner} here, so its sidecar must not run as {role}, a superuser",
            hint=f"connect as {owner}",
        )
    return PermissionDenied(
        f"pgtrickle belongs to the role {owner} here, and {role} does not have the rights of {owner}",
        hint=f"connect as {owner}, or: grant {owner} to {role}",
    )


def install(connection: Connection) -> list[str]:
    """Install or upgrade pgtrickle, in one transaction. Returns sentences that say what was done."""
    try:
        with connection.transaction():
            check_writable(connection)
            return _install(connection)
    except DatabaseError as error:
        raise to_refusal(error) from error


def uninstall(connection: Connection, *, drop_tables: bool = False) -> list[str]:
    """Remove triggers and schemas. Stream tables stay as ordinary tables unless `drop_tables` is true."""
    try:
        with connection.transaction():
            check_writable(connection)
            remains = Remains.of(connection)
            if not remains.owners:
                return ["pgtrickle is not installed here; nothing was done."]
            return _uninstall(connection, remains, drop_tables)
    except DatabaseError as error:
        raise to_refusal(error) from error


def _install(connection: Connection) -> list[str]:
    # two concurrent installations would both find nothing
    connection.execute("select pg_advisory_xact_lock(hashtext('pgtrickle install'))")
    done: list[str] = []
    remains = Remains.of(connection)
    if not remains.has_definitions:
        check_own(connection, remains)
    if "pgtrickle" in remains.owners:
        # the owner controls what code reading it runs, so read it with the owner's privileges only
        act_as_owner(connection, remains.owners["pgtrickle"])
    found = installed_version(connection)
    if found is not None and found > VERSION:
        raise other_version(found)
    is_damaged = bool(remains.owners) and (found is None or bool(remains.lacks(MIGRATIONS[:found])))
    is_kept = is_damaged and remains.has_definitions
    if is_kept:
        set_aside(connection, remains)
    elif is_damaged:
        dropped = drop_schemas(connection, remains)
        done.append(f"Dropped what was left of an earlier installation: {', '.join(dropped)}.")
    if is_damaged:
        found = None
    for number, name in enumerate(MIGRATIONS, start=1):
        if found is None or number > found:
            connection.execute(load("pgtrickle.catalog", f"sql/migrations/{name}"))
            connection.execute("insert into pgtrickle.pgt_schema_version (version) values (%s)", (number,))
            done.append(f"Applied migration {name.removesuffix('.sql')}.")
    write_functions(connection)
    if is_kept:
        count = take_over(connection)
        done.append(f"Parts of the catalog were missing: {count} stream tables were kept and are recomputed.")
    if ensure_state(connection):
        done.append("Created the schema pgtrickle_state again: all stream tables are recomputed.")
    connection.execute(
        "update pgtrickle.pgt_identity set system_identifier = pgtrickle_internal.system_identifier()"
        " where system_identifier is null and not pgtrickle_internal.has_moved()"
    )
    is_copy = installation(connection).is_copy
    if not is_copy:
        _fit_tables(connection)
    if found is None:
        done.insert(0, f"Created the schemas {', '.join(SCHEMAS)}.")
    done.append(f"Wrote the functions of pgtrickle {__version__}.")
    if is_copy:
        done.append("This database is a copy: run select * from pgtrickle.repair().")
    return done


def _fit_tables(connection: Connection) -> None:
    """Update the triggers on sources and stream tables to this version."""
    connection.execute("select pgtrickle_internal.restore_guards()")
    # trigger functions are generated, so those of an older version must be replaced
    connection.execute(
        "select pgtrickle_internal.refit_capture(source_relid) from pgtrickle.pgt_sources"
        " where trigger_level <> 'none' order by source_relid"
    )
    connection.execute("select pgtrickle_internal.note_missing_rights()")
    # a guard of an older version does not fire under session_replication_role = replica
    connection.execute("select pgtrickle_internal.guard_always(pgt_relid) from pgtrickle.pgt_stream_tables")


def _uninstall(connection: Connection, remains: Remains, drop_tables: bool) -> list[str]:
    done: list[str] = []
    tables = _stream_tables(connection) if remains.has_definitions else []
    connection.execute("set local lock_timeout = '10s'")
    if drop_tables:
        _check_no_children(connection, tables)
        for schema, name in tables:
            connection.execute(sql.SQL("drop table {} cascade").format(sql.Identifier(schema, name)))
            done.append(f"Dropped the table {RelationName(schema, name)}.")
    dropped = drop_schemas(connection, remains)
    done.append(
        f"Dropped the schemas {', '.join(reversed(dropped))}, and with them every trigger of pgtrickle."
    )
    if tables and not drop_tables:
        is_one = len(tables) == 1
        done.append(
            "1 stream table stays as an ordinary table."
            if is_one
            else f"{len(tables)} stream tables stay as ordinary tables."
        )
    return done


def _check_no_children(connection: Connection, tables: list[tuple[str, str]]) -> None:
    """Refuse to drop stream tables that other tables inherit from: those would be dropped too."""
    ours = [RelationName(schema, name).sql for schema, name in tables]
    row = connection.execute(
        "select i.inhrelid::regclass::text, i.inhparent::regclass::text from pg_inherits i"
        " where i.inhparent = any (%s::regclass[]) and i.inhrelid <> all (%s::regclass[])"
        " order by 1 limit 1",
        (ours, ours),
    ).fetchone()
    if row is not None:
        raise StillInUse(
            f"the table {row[0]} inherits from the stream table {row[1]}, and would be dropped with it",
            hint=f"alter table {row[0]} no inherit {row[1]}",
        )


def _stream_tables(connection: Connection) -> list[tuple[str, str]]:
    """The tables of stream tables, readers before what they read.

    In a copy an OID may belong to any table, so the guard or the name must confirm it.
    """
    return connection.execute(
        "select n.nspname, c.relname from pgtrickle.pgt_stream_tables s"
        " join pg_class c on c.relkind = 'r' join pg_namespace n on n.oid = c.relnamespace"
        " left join pg_trigger t on t.tgrelid = c.oid and t.tgname = 'pgtrickle_guard'"
        " and t.tgfoid = to_regproc('pgtrickle.refuse_direct_write')"
        " where (c.oid = s.pgt_relid)::int + ((n.nspname, c.relname) = (s.pgt_schema, s.pgt_name))::int"
        " + (t.oid is not null)::int >= 2"
        " group by 1, 2 order by max(s.pgt_id) desc"
    ).fetchall()
