"""Generates docs/CONFIGURATION.md from the tables of settings and options."""

from __future__ import annotations

from pgtrickle.model.options import OPTIONS, TableOption
from pgtrickle.model.setting import Setting
from pgtrickle.model.settings import SETTINGS

_HEAD = """\
# Configuration

This page is generated from `model/settings.py` and `model/options.py`: run `make reference` after a change.

## Settings of a process

`pgtrickle run` and the other commands take them as options, `pgtrickle.connect` takes those that are options
as arguments, and all of them can be set in the environment. What is given directly wins over the
environment; an empty variable counts as not set.

| option | environment variable | default | meaning |
|---|---|---|---|
"""
_OPTIONS = """
## Options of a stream table

The names are the same in SQL (`pgtrickle.create_stream_table(…, tier => 'cold')`), in Python and in
statements (`create stream table … with (tier = 'cold') as …`); on the command line they are as shown. Except
where it says otherwise, an option can be given on creation and changed later.

| option | command line | default | meaning |
|---|---|---|---|
"""


def configuration_page() -> str:
    """The text of docs/CONFIGURATION.md."""
    settings = "".join(map(_setting_row, SETTINGS))
    return _HEAD + settings + _OPTIONS + "".join(map(_option_row, OPTIONS))


def _setting_row(setting: Setting[object]) -> str:
    option = f"`{setting.option}`" if setting.is_option else ""
    default = setting.shown_default or f"`{setting.default}`"
    return f"| {option} | `{setting.variable}` | {default} | {_cell(setting.help)} |\n"


def _option_row(option: TableOption) -> str:
    limits = "" if option.is_for_alter else " Only on creation."
    limits += "" if option.is_for_create else " Only by altering."
    default = _shown_default(option.default) or option.shown_default
    return f"| `{option.name}` | `{option.cli_flag}` | {default} | {_cell(option.help)}{limits} |\n"


def _shown_default(default: str | bool | None) -> str:
    if default is None:
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    print(configuration_page(), end="")
