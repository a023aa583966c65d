"""Starts a proxy by the command given and asks it what the README asks. Fails when the demonstration does not hop."""

import sys
import tempfile
from pathlib import Path

from homes import Home, asks_the_demonstration

with tempfile.TemporaryDirectory() as folder:
    asks_the_demonstration(Home(Path(folder) / "home"), [str(Path(sys.argv[1]).resolve()), *sys.argv[2:]])
