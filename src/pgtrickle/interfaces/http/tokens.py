"""The token of the HTTP API: where it comes from, and how a given one is compared with it."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from pgtrickle.model.errors import BadSetting
from pgtrickle.model.http_settings import HTTP_TOKEN
from pgtrickle.model.settings import Settings

LEAST_LENGTH: Final = 16
LONGEST: Final = 1024


@dataclass(frozen=True, slots=True)
class Token:
    """A token, of which only a hash is kept. `file` is where a generated one can be read."""

    digest: bytes = field(repr=False)
    file: Path | None = None

    @property
    def is_generated(self) -> bool:
        """Whether it was made for this process."""
        return self.file is not None

    def matches(self, given: str) -> bool:
        """Whether this is the token. It takes the same time for every wrong one."""
        return hmac.compare_digest(self.digest, _digest(given))


def find_token(settings: Settings) -> Token | None:
    """The token that the settings name; None if they name none."""
    if settings.http_token_file is not None and settings.http_token is not None:
        raise BadSetting(f"http_token_file and {HTTP_TOKEN.variable} are both set", hint="set only one")
    if settings.http_token_file is not None:
        return Token(_digest(_checked(_read(Path(settings.http_token_file)), "http_token_file")))
    if settings.http_token is not None:
        return Token(_digest(_checked(settings.http_token, HTTP_TOKEN.variable)))
    return None


def generate_token(settings: Settings, environment: Mapping[str, str], port: int) -> Token:
    """A new token in a file that only this user can read. The file is replaced at the next start."""
    text = secrets.token_urlsafe(32)
    directory = _private_directory(settings, environment)
    file = directory / f"http-token-{port}"
    file.unlink(missing_ok=True)
    # a file that somebody else has put there in the meantime is an error
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text + "\n")
    return Token(_digest(text), file)


def _private_directory(settings: Settings, environment: Mapping[str, str]) -> Path:
    """A directory that only this user can use."""
    runtime = environment.get("XDG_RUNTIME_DIR")
    candidates = [Path(runtime) / "pgtrickle"] if runtime and Path(runtime).is_absolute() else []
    if cache := settings.cache_directory(environment):
        candidates.append(cache / "http")
    for candidate in candidates:
        try:
            candidate.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = candidate.stat()
            if found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077:
                return candidate
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="pgtrickle-http-"))


def _read(file: Path) -> str:
    try:
        found = file.stat()
        if stat.S_IMODE(found.st_mode) & stat.S_IWOTH:
            raise BadSetting(
                f"everybody can write to the token file {file}", hint=f"run chmod 600 {file}, then change it"
            )
        return file.read_text(encoding="utf-8")[: LONGEST + 2].strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadSetting(
            f"the token file {file} cannot be read: {reason}", hint="give a file with one line: the token"
        ) from None


def _checked(text: str, origin: str) -> str:
    if (
        not LEAST_LENGTH <= len(text) <= LONGEST
        or not text.isascii()
        or not text.isprintable()
        or " " in text
    ):
        raise BadSetting(
            f"the token in {origin} is not usable",
            hint=f"it must be one word of at least {LEAST_LENGTH} ASCII characters; for example, write the"
            " output of `openssl rand -hex 32` into the file",
        )
    return text


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
