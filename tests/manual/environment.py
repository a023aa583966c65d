"""The environment variables that count. A test compares the names with those that the sources mention."""

from typing import NamedTuple


class Variable(NamedTuple):
    """A variable, who reads it, and what it means."""

    name: str
    reader: str
    meaning: str


VARIABLES = (
    Variable("COMBOS_CONFIG", "proxy, `ocx`", "The configuration file, unless `combos_config` or `--config` names it."),
    Variable("COMBOS_HOME", "proxy, `ocx`", "Folder of `config.json` and the state files; default `~/.combos`."),
    Variable(
        "COMBOS_ADMIN_TOKEN",
        "proxy, `ocx`",
        "Token of the management API; default: the file `admin-api-token` beside the configuration.",
    ),
    Variable(
        "COMBOS_ADMIN_URL",
        "`ocx`",
        "Address of the management API; default: as in `runtime-port.json` beside the configuration.",
    ),
    Variable("<NAME>_API_KEY", "proxy", "Key of a provider without `apiKey`: `my-row` reads `MY_ROW_API_KEY`."),
    Variable("TYPESAFE_API_KEY", "proxy", "Key of the TypeSafe decision service, when no provider row `jev` has one."),
    Variable("JEV_API_KEY", "proxy", "The same, looked at after `TYPESAFE_API_KEY`."),
    Variable("NO_COLOR", "`ocx`", "Any value: no colours."),
    Variable("_OCX_COMPLETE", "`ocx`", "Prints shell completion: `bash_source`, `zsh_source` or `fish_source`."),
    Variable("COMBOS_PYTHON", "`scripts/setup`", "The Python that `.venv` is made with."),
    Variable("PYENV_ROOT", "`scripts/setup`", "Where pyenv keeps its versions; default `~/.pyenv`."),
    Variable("COMBOS_SCREENSHOTS", "tests", "`1`: the browser tests make the pictures of the documentation anew."),
)
