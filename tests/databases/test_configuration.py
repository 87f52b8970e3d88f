"""The databases of a process: from its options and its configuration file. Passwords are only referred to."""

from __future__ import annotations

import pytest

from pgtrickle.commands.databases import served_databases
from pgtrickle.model.errors import BadSetting
from pgtrickle.model.settings import Pooling, Settings

FULL = """
[database.shop]
dsn = "host=db1 dbname=shop user=trickle"
password = { env = "SHOP_PASSWORD" }
quota = 2
pooler = "yes"
max_connections = 6
listen_dsn = "host=db1 port=5433 dbname=shop"

[database.archive]
dsn = "dbname=archive"
enabled = false

[database.billing]
service = "billing"

[server.main]
dsn = "host=db2 user=trickle"
password = { file = "PATH" }
exclude = ["postgres"]
"""


@pytest.fixture
def read(tmp_path):
    """Reads a configuration, called as `read(text, dsns, SHOP_PASSWORD=...)`."""

    def read(text, dsns=(), **environment):
        file = tmp_path / "databases.toml"
        file.write_text(text)
        return served_databases(Settings(config=str(file)), dsns, environment)

    return read


def test_a_file_names_databases_and_servers_and_refers_to_their_passwords(read, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("from-a-file\n")
    found = read(FULL.replace("PATH", str(secret)), SHOP_PASSWORD="from the environment")
    shop, billing = found.databases
    assert (shop.name, shop.quota, shop.pooler, shop.max_connections) == ("shop", 2, Pooling.YES, 6)
    assert "from the environment" in shop.dsn
    assert "from the environment" in (shop.listen_dsn or "")
    assert (billing.name, billing.dsn, billing.quota) == ("billing", "service=billing", 1)
    (server,) = found.servers
    assert "from-a-file" in server.dsn
    assert server.exclude == {"postgres"}
    assert "environment" not in repr(found)
    assert "from-a-file" not in repr(found)


def test_addresses_of_the_command_line_come_in_addition(read):
    found = read('[database.shop]\ndsn = "dbname=shop"\n', ["dbname=more host=a", "dbname=more host=b"])
    assert [database.name for database in found.databases] == ["shop", "more", "more@b:5432"]


def test_without_a_file_there_is_the_database_of_the_settings_or_those_of_the_options():
    assert served_databases(Settings(dsn="dbname=one"), (), {}).is_single
    two = served_databases(Settings(), ("dbname=one", "postgresql://me@host/two"), {})
    assert [database.name for database in two.databases] == ["one", "two"]
    server = served_databases(Settings(dsn="dbname=one", discover=True), (), {})
    assert (len(server.servers), server.databases, server.is_single) == (1, (), False)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("database", "is not valid TOML", "correct the file"),
        ("", "no database that is enabled", "[database.shop]"),
        ('[database.a]\ndsn = "dbname=a"\nenabled = false', "no database that is enabled", "add one"),
        ('[databases.a]\ndsn = "dbname=a"', "unknown key databases", "database, server"),
        ('[database.a]\ndns = "dbname=a"', "unknown key dns", "dsn"),
        ("[database.a]\nquota = 1", "has no address", "dsn ="),
        ('[database.a]\ndsn = "dbname=a password=hunter2"', "contains a password", "env"),
        ('[database.a]\ndsn = "postgresql://me:hunter2@host/a"', "contains a password", "file"),
        ('[database.a]\ndsn = "dbname=a"\npassword = "hunter2"', "is not a reference", "env"),
        ('[database.a]\ndsn = "dbname=a"\npassword = { env = "MISSING" }', "MISSING", "set it"),
        ('[database.a]\ndsn = "dbname=a"\npassword = { file = "/no" }', "cannot be read", "permissions"),
        ('[database.a]\ndsn = "dbname=a"\nquota = 0', "quota", "between 1 and 64"),
        ('[database.a]\ndsn = "dbname=a"\nquota = true', "quota", "between 1 and 64"),
        ('[database.a]\ndsn = "dbname=a"\nquota = "2"', "quota", "a whole number"),
        ('[database.a]\ndsn = "dbname=a"\npooler = "maybe"', "pooler", "auto, yes or no"),
        ('[database.a]\ndsn = "dbname=a"\nmax_connections = 2', "too few", "at least"),
        ('[database.a]\ndsn = "dbname=a oops"', "cannot be parsed", "host="),
        ('[server.a]\ndsn = "dbname=a"\nlisten_dsn = "x"', "unknown key listen_dsn", "exclude"),
        ('[server.a]\ndsn = "dbname=a"\nexclude = [1]', "not a list of names", "exclude ="),
        ("database = 3", "has no name", "[database.NAME]"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place_and_what_to_do(read, text, message, hint):
    with pytest.raises(BadSetting) as refusal:
        read(text)
    assert message in refusal.value.message
    assert hint in (refusal.value.hint or "")
    assert "hunter2" not in str(refusal.value)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(BadSetting, match=r"nowhere\.toml cannot be read"):
        served_databases(Settings(config="nowhere.toml"), (), {})


def test_the_same_database_twice_is_refused():
    with pytest.raises(BadSetting, match="given twice"):
        served_databases(Settings(), ("dbname=a host=x", "dbname=a host=x", "dbname=a host=x"), {})


def test_an_address_to_listen_at_needs_a_single_database():
    with pytest.raises(BadSetting, match="listen_dsn"):
        served_databases(Settings(listen_dsn="dbname=a"), ("dbname=a", "dbname=b"), {})
