"""Addresses, names and tokens are read carefully, because much depends on them."""

from __future__ import annotations

import stat

import pytest

from pgtrickle.interfaces.http.tokens import find_token, generate_token
from pgtrickle.model.errors import BadSetting
from pgtrickle.model.http_settings import HTTP, HTTP_HOST, HttpAddress
from pgtrickle.model.settings import Settings


@pytest.mark.parametrize(
    ("text", "host", "port", "is_loopback"),
    [
        ("127.0.0.1:8432", "127.0.0.1", 8432, True),
        ("127.9.9.9:1", "127.9.9.9", 1, True),
        ("localhost:99", "localhost", 99, True),
        ("[::1]:99", "::1", 99, True),
        (":99", "127.0.0.1", 99, True),
        ("99", "127.0.0.1", 99, True),
        ("localhost", "localhost", 8432, True),
        ("0.0.0.0:99", "0.0.0.0", 99, False),
        ("[::]:99", "::", 99, False),
        ("localhost.evil.test:99", "localhost.evil.test", 99, False),
        ("10.0.0.1:0", "10.0.0.1", 0, False),
    ],
)
def test_an_address_is_a_host_and_a_port(text, host, port, is_loopback):
    found = HTTP.value(text)
    assert found == HttpAddress(host, port)
    assert found.is_loopback is is_loopback


@pytest.mark.parametrize("text", ["http://x:1", "x:y", "x:99999", "::1:99", "a b:1", "x:-1", "u@x:1", "x:²"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadSetting, match="http cannot be"):
        HTTP.value(text)


def test_off_is_no_address():
    assert HTTP.value("off") is None


def test_names_of_hosts_are_a_list():
    assert HTTP_HOST.value("Shop.test, b ,") == ("shop.test", "b")
    with pytest.raises(BadSetting):
        HTTP_HOST.value("http://shop.test")


def test_a_token_comes_from_a_file_or_the_environment_but_not_both(tmp_path):
    file = tmp_path / "token"
    file.write_text("a-good-token-of-some-length\n")
    found = find_token(Settings(http_token_file=str(file)))
    assert found is not None
    assert found.matches("a-good-token-of-some-length")
    assert not found.matches("a-good-token-of-some-lengtH")
    assert find_token(Settings()) is None
    with pytest.raises(BadSetting, match="both"):
        find_token(Settings(http_token_file=str(file), http_token="another-token-of-length"))


@pytest.mark.parametrize("text", ["", "short", "two words of length", "ümläute-ümläute-ümläute", "x" * 2000])
def test_a_bad_token_is_refused_without_being_shown(tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(BadSetting, match="is not usable") as refused:
        find_token(Settings(http_token_file=str(file)))
    assert len(text) < 5 or text not in str(refused.value)


def test_a_token_file_that_everybody_can_write_is_refused(tmp_path):
    file = tmp_path / "token"
    file.write_text("a-good-token-of-some-length")
    file.chmod(0o666)
    with pytest.raises(BadSetting, match="everybody can write"):
        find_token(Settings(http_token_file=str(file)))


def test_a_generated_token_is_in_a_file_for_this_user_alone(tmp_path):
    one = generate_token(Settings(), {"XDG_RUNTIME_DIR": str(tmp_path)}, 8432)
    assert one.file is not None
    assert one.file == tmp_path / "pgtrickle" / "http-token-8432"
    assert stat.S_IMODE(one.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(one.file.parent.stat().st_mode) == 0o700
    first = one.file.read_text().strip()
    two = generate_token(Settings(), {"XDG_RUNTIME_DIR": str(tmp_path)}, 8432)
    assert one.matches(first)
    assert not two.matches(first)


def test_a_directory_that_others_can_read_gets_no_token(tmp_path):
    shared = tmp_path / "run" / "pgtrickle"
    shared.mkdir(parents=True)
    shared.chmod(0o755)
    environment = {"XDG_RUNTIME_DIR": str(tmp_path / "run"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = generate_token(Settings(), environment, 1)
    assert found.file == tmp_path / "cache" / "pgtrickle" / "http" / "http-token-1"
