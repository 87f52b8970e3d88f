"""What each route needs. A route that is not listed here needs the token, and a test fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgtrickle.interfaces.http.access import Need

API: Final = "/api/v1"

_OPEN: Final = (
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/"),
    ("HEAD", "/"),
    ("GET", "/{name}"),
    ("HEAD", "/{name}"),
    ("GET", "/{directory}/{name}"),
    ("HEAD", "/{directory}/{name}"),
    ("GET", f"{API}/session"),
    ("POST", f"{API}/session"),
    ("DELETE", f"{API}/session"),
)
"""The page must load before anybody can sign in; it shows nothing by itself."""

_READ: Final = (
    ("GET", f"{API}/openapi.json"),
    ("GET", f"{API}/overview"),
    ("GET", f"{API}/timeline"),
    ("GET", f"{API}/graph"),
    ("GET", f"{API}/capture"),
    ("GET", f"{API}/sidecars"),
    ("GET", f"{API}/caches"),
    ("GET", f"{API}/health"),
    ("GET", f"{API}/alerts"),
    ("GET", f"{API}/publications"),
    ("GET", f"{API}/export"),
    ("GET", f"{API}/materialized-views"),
    ("GET", "/metrics"),
    ("GET", f"{API}/events"),
    ("GET", f"{API}/tables/{{name}}"),
    ("GET", f"{API}/tables/{{name}}/history"),
)
"""What PostgreSQL shows every role that can connect. Without the token, error texts are left out."""

_TOKEN: Final = (
    ("GET", f"{API}/tables/{{name}}/rows"),
    ("GET", f"{API}/tables/{{name}}/preview"),
    ("GET", f"{API}/tables/{{name}}/changes"),
    ("GET", f"{API}/tables/{{name}}/changes/stream"),
    ("GET", f"{API}/advice"),
    ("GET", f"{API}/doctor"),
    ("POST", f"{API}/validate"),
    ("POST", f"{API}/apply"),
    ("POST", f"{API}/adopt"),
    ("POST", f"{API}/repair"),
    ("POST", f"{API}/verify"),
    ("POST", f"{API}/tables"),
    ("PATCH", f"{API}/tables/{{name}}"),
    ("DELETE", f"{API}/tables/{{name}}"),
    ("POST", f"{API}/tables/{{name}}/refresh"),
    ("POST", f"{API}/tables/{{name}}/pause"),
    ("POST", f"{API}/tables/{{name}}/resume"),
    ("POST", f"{API}/tables/{{name}}/repair"),
    ("POST", f"{API}/tables/{{name}}/verify"),
    ("GET", f"{API}/subscriptions"),
    ("POST", f"{API}/tables/{{name}}/publish"),
    ("POST", f"{API}/tables/{{name}}/unpublish"),
    ("POST", f"{API}/tables/{{name}}/track"),
    ("POST", f"{API}/tables/{{name}}/untrack"),
    ("POST", f"{API}/tables/{{name}}/subscribe"),
    ("POST", f"{API}/tables/{{name}}/unsubscribe"),
    ("POST", f"{API}/sources/{{name}}/gate"),
    ("POST", f"{API}/sources/{{name}}/ungate"),
    ("POST", f"{API}/bulk-create"),
    ("POST", f"{API}/drain"),
    ("POST", f"{API}/undrain"),
    ("POST", f"{API}/clear-caches"),
)
"""Everything that writes, shows rows, or runs a query."""

ACCESS: Final[Mapping[tuple[str, str], Need]] = {
    **dict.fromkeys(_OPEN, Need.NOTHING),
    **dict.fromkeys(_READ, Need.READ),
    **dict.fromkeys(_TOKEN, Need.TOKEN),
}

FLEET_ACCESS: Final[Mapping[tuple[str, str], Need]] = {
    **dict.fromkeys(_OPEN, Need.NOTHING),
    ("GET", "/metrics"): Need.READ,
    ("GET", f"{API}/openapi.json"): Need.READ,
    ("GET", f"{API}/databases"): Need.READ,
    ("GET", "/databases"): Need.READ,
}
"""The same for the list at the top of a server of several databases."""
