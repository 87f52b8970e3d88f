"""The option for settings of Spark."""

from __future__ import annotations

from typing import Annotated

from typer import BadParameter, Option

SparkConf = Annotated[
    list[str] | None,
    Option(
        "--spark-conf",
        show_default=False,
        metavar="KEY=VALUE",
        help="A setting of Spark. May be given several times.",
    ),
]


def spark_settings_of(given: list[str]) -> dict[str, str]:
    """The settings by name; raise if one has no value."""
    for setting in given:
        if "=" not in setting:
            raise BadParameter(f"--spark-conf takes KEY=VALUE, and {setting!r} has no =")
    return dict(setting.split("=", 1) for setting in given)
