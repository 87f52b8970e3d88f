"""Generates docs/CLI.md from the commands of the command line."""

from __future__ import annotations

import re
from typing import Any, Final

import typer

from pgtrickle.interfaces.cli.application import application
from pgtrickle.model.settings import SETTINGS

_HEAD: Final = """\
# Command line

This page is generated from the commands in `interfaces/cli`: run `make reference` after a change.

`pgtrickle COMMAND --help` shows the same on the terminal. With `--json`, the result goes to standard output
and an error to standard error, both as JSON. [Errors](ERRORS.md) lists the exit codes,
[Configuration](CONFIGURATION.md) explains the settings and options in one place.

`pgtrickle --install-completion` installs completion for your shell (bash, zsh, fish or PowerShell);
`pgtrickle --show-completion` prints the script instead. It completes commands, options, and the names of
stream tables and sources, from the database that `PGTRICKLE_DSN` or `--dsn` names. If that database does not
answer within a quarter of a second, it completes no names.

| command | what it does |
|---|---|
"""
_VARIABLES: Final = """
## Environment variables

Every option with an environment variable shows it above. These settings have no option:

| variable | default | meaning |
|---|---|---|
"""
_HIDDEN: Final = frozenset({"--help"})


def cli_page() -> str:
    """The text of docs/CLI.md."""
    commands: dict[str, Any] = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    page = _HEAD
    for name, command in commands.items():
        page += f"| [`{name}`](#{name}) | {_paragraphs(command)[0]} |\n"
    for name, command in commands.items():
        page += _section(name, command)
    rows = [_variable_row(setting) for setting in SETTINGS if not setting.is_option]
    return page + _VARIABLES + "".join(rows)


def _section(name: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [p for p in command.params if p not in arguments and not _HIDDEN & set(p.opts)]
    usage = " ".join(["pgtrickle", name, *map(_usage, arguments), "[OPTIONS]"])
    page = f"\n## {name}\n\n```text\n{usage}\n```\n\n" + "\n\n".join(_paragraphs(command)) + "\n"
    if arguments:
        page += "\n| argument | meaning |\n|---|---|\n"
        page += "".join(f"| `{_metavar(argument)}` | {_cell(argument.help)} |\n" for argument in arguments)
    page += "\n| option | default | environment variable | meaning |\n|---|---|---|---|\n"
    return page + "".join(map(_option_row, options))


def _option_row(option: Any) -> str:
    names = sorted([*option.opts], key=len)
    value = f" {_metavar(option)}" if _metavar(option) else ""
    shown = ", ".join(f"`{name}{value}`" for name in names) + "".join(
        f", `{name}`" for name in option.secondary_opts
    )
    variable = f"`{option.envvar}`" if option.envvar else ""
    return f"| {_cell(shown)} | {_cell(_default(option))} | {variable} | {_cell(option.help)} |\n"


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return str(option.show_default)
    if option.show_default is False or option.default is None or option.is_flag:
        return ""
    return f"`{getattr(option.default, 'value', option.default)}`"


def _usage(argument: Any) -> str:
    return _metavar(argument) if argument.required else f"[{_metavar(argument)}]"


def _metavar(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    return str(parameter.metavar or "TEXT")


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", command.help)]


def _variable_row(setting: Any) -> str:
    return f"| `{setting.variable}` | {setting.shown_default or setting.default} | {_cell(setting.help)} |\n"


def _cell(text: str) -> str:
    """A text as the cell of a table."""
    return text.replace("|", "\\|").replace(" * * * *", " \\* \\* \\* \\*")


if __name__ == "__main__":
    print(cli_page(), end="")
