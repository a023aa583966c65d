"""`ocx explain-flow` and `ocx dashboard`: recorded flows judged anew, and the dashboard opened with its token.

Reading flows needs mitmproxy, which takes a second to import and which no other command needs: it is done by a program
of its own, started with this interpreter.
"""

import os
import subprocess
import sys
import webbrowser
from pathlib import Path
from urllib.parse import quote

import click

import combos
from combos.cli.files import config_option, json_option, located
from combos.cli.grammar import Command
from combos.cli.live import LiveError, open_live
from combos.cli.output import Failed, say

_READER = "combos.mitm.recorded"


@click.command("explain-flow", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@json_option
@config_option
def explain_flow(file: Path, config: str | None, as_json: bool) -> None:
    """Judge recorded flows by today's rules: per attempt the rule, the cooldown, and what would happen.

    FILE is what `mitmdump -w` or mitmweb saved. Nothing is sent anywhere.

    \b
    ocx explain-flow traffic.mitm
    ocx explain-flow traffic.mitm --json
    """
    arguments = [str(file), "--config", str(located(config).path), *(["--json"] if as_json else [])]
    parent = str(Path(combos.__file__).resolve().parent.parent)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (parent, os.environ.get("PYTHONPATH"))))}
    done = subprocess.run([sys.executable, "-m", _READER, *arguments], env=environ, check=False)  # noqa: S603
    sys.exit(done.returncode)


@click.command("dashboard", cls=Command)
@click.option("--print", "print_only", is_flag=True, help="Print the address with the token instead of opening it.")
@config_option
def dashboard(config: str | None, print_only: bool) -> None:
    """Open the dashboard of the running proxy in a browser, signed in.

    The token is behind the `#` of the address: browsers do not send that part anywhere.

    \b
    ocx dashboard
    ocx dashboard --print
    """
    try:
        live = open_live(located(config).path, os.environ)
        live.call("GET", "/readyz")
    except LiveError as error:
        raise Failed(f"{error}\nTry: ocx run") from None
    address = f"{live.url}/#token={quote(live.token, safe='')}"
    if print_only:
        click.echo(address)
    elif webbrowser.open(address):
        say(f"The dashboard is open: {live.url}/")
    else:
        raise Failed(f"no browser could be started; open {live.url}/ yourself (ocx dashboard --print)")
