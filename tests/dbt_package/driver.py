"""Runs dbt in one process of its own environment, so that it starts only once.

Reads one JSON line for each run: {"arguments": […], "environment": {…}}. Writes one with what came of it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any


def main() -> None:
    runner = import_module("dbt.cli.main").dbtRunner
    for line in sys.stdin:
        request = json.loads(line)
        os.environ.update(request["environment"])
        said = StringIO()
        with redirect_stdout(said):
            found = runner().invoke(request["arguments"])
        answer = {
            "success": bool(found.success),
            "error": str(found.exception or ""),
            "said": said.getvalue(),
            "results": [_described(result) for result in getattr(found.result, "results", None) or ()],
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _described(result: Any) -> dict[str, Any]:
    return {
        # what an operation returns has no node
        "name": result.node.name if hasattr(result, "node") else result.unique_id,
        "status": str(result.status),
        "message": str(result.message or ""),
        "age": getattr(result, "age", None),
    }


if __name__ == "__main__":
    main()
