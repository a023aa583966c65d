"""Entry point of `ocx`: the group that the commands hang on."""

import click

from combos import __version__
from combos.cli.catalog import catalog
from combos.cli.combo import combo, route
from combos.cli.config import config
from combos.cli.flows import dashboard, explain_flow
from combos.cli.grammar import Group
from combos.cli.importer import import_config
from combos.cli.provider import provider
from combos.cli.quota import quota
from combos.cli.run import addon_path, run
from combos.cli.status import cooldowns, explain, health, ready, state
from combos.cli.usage import usage_command


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ocx")
def main() -> None:
    """Failover and load balancing for model traffic.

    \b
    ocx provider add openai          add a provider by its preset
    ocx combo set main --targets anthropic/claude-opus-4-8,openai/gpt-5.6-sol
    ocx run                          start the proxy on 127.0.0.1:8080
    mitmweb -s "$(ocx addon-path)"   start it by hand
    """


_COMMANDS = (
    run, addon_path, catalog, combo, route, provider, config, import_config, explain, health, ready, state, cooldowns,
    usage_command, dashboard, explain_flow,
)  # fmt: skip

provider.add_command(quota)
for _command in _COMMANDS:
    main.add_command(_command)
