"""Finds the Java runtime that Spark will use, before Spark is started."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from pgtrickle.model.errors import JavaMissing

OLDEST_JAVA: Final = 17
_HINT: Final = f"install a Java runtime {OLDEST_JAVA} or newer, or point JAVA_HOME at one"
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


def require_java(environment: Mapping[str, str] = os.environ) -> None:
    """Raise JavaMissing unless the Java that Spark would start is recent enough."""
    java, text = java_command(environment), java_version(environment)
    found = _VERSION.search(text)
    if found is None or int(found[1]) < OLDEST_JAVA:
        version = found[1] if found else "of an unknown version"
        raise JavaMissing(f"Spark needs Java {OLDEST_JAVA} or newer, and {java} is {version}", hint=_HINT)


def java_version(environment: Mapping[str, str]) -> str:
    """What the Java that Spark would start says about its version."""
    return _version_of(java_command(environment))


@cache
def _version_of(java: str) -> str:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as failure:
        raise JavaMissing(f"{java} cannot be run", hint=_HINT) from failure
    return answer.stderr + answer.stdout


def java_command(environment: Mapping[str, str]) -> str:
    """The Java that Spark would start."""
    if home := environment.get("JAVA_HOME"):
        command = Path(home) / "bin" / "java"
        if not command.exists():
            raise JavaMissing(f"JAVA_HOME is {home}, but there is no bin/java in it", hint=_HINT)
        return str(command)
    found = shutil.which("java", path=environment.get("PATH", os.defpath))
    if found is None:
        raise JavaMissing("Spark needs a Java runtime, and there is none on the PATH", hint=_HINT)
    return found
