"""Entry point of `ocx`: the group that the commands hang on."""

import click

from combos import __version__
from combos.cli.catalog import catalog
from combos.cli.run import addon_path, run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ocx")
def main() -> None:
    """Failover and load balancing for model traffic.

    \b
    ocx run                      start the proxy on 127.0.0.1:8080
    mitmweb -s "$(ocx addon-path)"   start it by hand
    """


main.add_command(run)
main.add_command(addon_path)
main.add_command(catalog)
