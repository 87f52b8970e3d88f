"""A browser exchanges the token for a cookie, which works only from the page of the server."""

from __future__ import annotations

import pytest

from pgtrickle.interfaces.http.attempts import BURST, SECONDS_PER_ATTEMPT, Attempts
from pgtrickle.interfaces.http.sessions import LOGIN_SECONDS, MOST_SESSIONS, SESSION_SECONDS, Sessions

SAME = {"Sec-Fetch-Site": "same-origin"}


def origin(api) -> dict[str, str]:
    return {"Origin": api.server.url.rstrip("/")}


@pytest.fixture
def signed_in(api):
    answer = api.post("/session", {"token": api.token}, token=False, headers=SAME)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    return api


def test_the_cookie_is_for_this_server_alone_and_holds_no_token(api):
    answer = api.post("/session", {"token": api.token}, token=False, headers=SAME)
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"pgtrickle_{api.server.address.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert f"Max-Age={SESSION_SECONDS}" in cookie
    assert "Secure" not in cookie
    assert api.token not in cookie


def test_behind_a_proxy_with_tls_the_cookie_is_secure(serve):
    api = serve(http_host=("shop.test",))
    headers = {"Host": "shop.test", "Origin": "https://shop.test"}
    answer = api.post("/session", {"token": api.token}, token=False, headers=headers)
    assert "Secure" in answer.headers["Set-Cookie"]


def test_a_session_reads_rows_and_writes_from_the_page(signed_in, shop):
    for headers in (SAME, origin(signed_in), {"X-Pgtrickle": "1"}):
        assert signed_in.get("/session", headers=headers).json()["signed_in"] is True
        assert signed_in.get("/tables/sales/rows", headers=headers).status_code == 200
        assert signed_in.post("/undrain", token=False, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "none", "X-Pgtrickle": "1"}],
)
def test_a_cookie_without_evidence_of_the_page_counts_for_nothing(signed_in, shop, headers):
    assert signed_in.get("/session", headers=headers).json()["signed_in"] is False
    assert signed_in.get("/tables/sales/rows", headers=headers).status_code == 401
    assert signed_in.post("/undrain", token=False, headers=headers).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.test"}],
)
def test_other_pages_cannot_use_the_cookie(signed_in, shop, headers):
    assert signed_in.get("/tables/sales/rows", headers=headers).status_code == 403
    assert signed_in.get("/events", headers=headers).status_code == 403
    assert signed_in.post("/undrain", token=False, headers=headers).status_code == 403


def test_error_texts_are_only_for_those_who_are_signed_in(signed_in, shop, admin):
    admin.execute("update pgtrickle.pgt_stream_tables set last_error = 'row (hush)', consecutive_errors = 1")
    assert signed_in.get("/tables/sales").json()["last_error"] is None
    assert signed_in.row("public.sales")["error"] is None
    assert signed_in.get("/tables/sales", headers=SAME).json()["last_error"] == "row (hush)"
    shown = signed_in.get("/overview", headers=SAME).json()["tables"]
    assert {row["error"] for row in shown} == {"row (hush)"}


def test_signing_out_ends_the_session(signed_in, shop):
    cookie = dict(signed_in.client.cookies)
    assert signed_in.send("DELETE", "/session", token=False, headers=SAME).json() == {"ok": True}
    signed_in.client.cookies.update(cookie)
    assert signed_in.get("/tables/sales/rows", headers=SAME).status_code == 401


def test_a_wrong_token_gives_no_session(api):
    for body in ({"token": "wrong-token-0123456789"}, {}, {"code": "x"}, {"token": None}):
        answer = api.post("/session", body, token=False, headers=SAME)
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers


def test_only_a_page_can_sign_in(api):
    assert api.post("/session", {"token": api.token}, token=False).status_code == 403


def test_a_login_link_signs_in_once(api, shop):
    link = api.server.login_link()
    page, _, code = link.partition("#login=")
    assert page == api.server.url
    assert api.post("/session", {"code": code}, token=False, headers=SAME).status_code == 200
    assert api.get("/tables/sales/rows", headers=SAME).status_code == 200
    api.client.cookies.clear()
    assert api.post("/session", {"code": code}, token=False, headers=SAME).status_code == 401


def test_forged_cookies_are_worth_nothing(api, shop):
    for value in ("", "x", api.token, "a" * 43):
        api.client.cookies.set(f"pgtrickle_{api.server.address.port}", value)
        assert api.get("/tables/sales/rows", headers=SAME).status_code == 401


def test_sessions_and_codes_expire_and_are_limited():
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    first, code = sessions.begin(), sessions.new_code()
    assert sessions.is_open(first)
    now[0] = LOGIN_SECONDS + 1
    assert not sessions.use_code(code)
    now[0] = SESSION_SECONDS + 1
    assert not sessions.is_open(first)
    many = [sessions.begin() for _ in range(MOST_SESSIONS + 1)]
    assert [sessions.is_open(secret) for secret in many].count(False) == 1
    assert not sessions.is_open(many[0])


def test_attempts_come_back_with_time_and_count_by_address():
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(BURST):
        assert attempts.is_allowed("a")
        attempts.note_failure("a")
    assert not attempts.is_allowed("a")
    assert attempts.is_allowed("b")
    now[0] = SECONDS_PER_ATTEMPT * 1.01
    assert attempts.is_allowed("a")
