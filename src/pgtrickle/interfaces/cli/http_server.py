"""The HTTP server of `run`: opens it, and tells how to get in."""

from __future__ import annotations

from pgtrickle.interfaces.cli.log_lines import SidecarLog
from pgtrickle.interfaces.cli.printing import errors
from pgtrickle.interfaces.http import server
from pgtrickle.interfaces.http.fleet_server import FleetServer
from pgtrickle.interfaces.http.web_server import WebServer
from pgtrickle.model.settings import LogFormat, Settings


def open_server(settings: Settings, log: SidecarLog) -> server.HttpServer | None:
    """Listen at the address of the settings; None if they have none. The server is started later."""
    opened = server.open_server(settings)
    if opened is not None:
        _announce(opened, settings, log)
    return opened


def open_fleet_server(settings: Settings, log: SidecarLog) -> FleetServer | None:
    """The same for several databases."""
    if settings.http is None:
        return None
    opened = FleetServer(settings)
    _announce(opened, settings, log)
    return opened


def _announce(opened: WebServer, settings: Settings, log: SidecarLog) -> None:
    is_watched = errors().is_terminal and settings.log_format is LogFormat.TEXT
    log.announce(_sentence(opened, is_watched=is_watched))


def _sentence(opened: WebServer, *, is_watched: bool) -> str:
    """Where the page is. A link that signs in is for a person at a terminal, not for a log."""
    if is_watched and opened.token.is_generated:
        return (
            f"The page is at {opened.login_link()} (this link signs in once, within ten minutes)."
            f" The token for programs is in {opened.token.file}."
        )
    return f"The page is at {opened.where()}"
