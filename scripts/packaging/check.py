"""Checks that what is built is whole and that it can be installed in every documented way. See docs/install.md."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from built import ROOT, build, content, differences, unpack, version
from homes import Home, asks_the_demonstration

WORKS = 'exec mitmdump -s "$(ocx addon-path)" --listen-host 127.0.0.1 "$@"'
"""The line of the README that starts mitmproxy by hand, for a shell."""


class Checks:
    """Runs checks one after the other and prints a line for each."""

    def __init__(self) -> None:
        self.failed = 0

    def run(self, name: str, check: Callable[[], object]) -> bool:
        """Whether it holds."""
        begin = time.monotonic()
        try:
            check()
        except (AssertionError, OSError, subprocess.SubprocessError, ValueError) as error:
            self.failed += 1
            print(f"FAILED  {name}\n{error}", flush=True)
            return False
        print(f"ok      {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        return True


class Ways:
    """The ways of installing, each in a home of its own under `work`."""

    def __init__(self, work: Path, wheel: Path) -> None:
        self.work = work
        self.wheel = wheel

    def into_a_venv(self) -> None:
        """A venv that has mitmproxy already keeps every version it has; uninstalling leaves nothing of ours."""
        home = Home(self.work / "venv")
        venv = home.folder / ".local"
        home.run(sys.executable, "-m", "venv", venv)
        home.run(venv / "bin" / "pip", "install", "-q", "mitmproxy")
        before = set(home.run(venv / "bin" / "pip", "freeze").splitlines())
        home.run(venv / "bin" / "pip", "install", "-q", self.wheel)
        after = set(home.run(venv / "bin" / "pip", "freeze").splitlines())
        assert before <= after, f"other versions than before: {sorted(before - after)}"
        home.run(venv / "bin" / "pip", "check")
        works(home)
        home.run(venv / "bin" / "pip", "uninstall", "-q", "-y", "mitmproxy-combos")
        assert not home.left(), home.left()

    def by_pipx(self, pipx: Path) -> None:
        """`ocx` alone: mitmproxy is in its environment."""
        home = Home(self.work / "pipx")
        home.run(pipx, "install", "--python", sys.executable, self.wheel)
        asks_the_demonstration(home, ["ocx", "run"])
        home.run(pipx, "uninstall", "mitmproxy-combos")
        assert not programs(home)

    def by_pipx_with_dependencies(self, pipx: Path) -> None:
        """`ocx` and mitmproxy's own programs."""
        home = Home(self.work / "pipx-deps")
        home.run(pipx, "install", "--include-deps", "--python", sys.executable, self.wheel)
        works(home)
        home.run(pipx, "uninstall", "mitmproxy-combos")
        assert not programs(home)

    def injected_by_pipx(self, pipx: Path) -> None:
        """Into a mitmproxy that pipx has installed before."""
        home = Home(self.work / "inject")
        home.run(pipx, "install", "--python", sys.executable, "mitmproxy")
        home.run(pipx, "inject", "--include-apps", "mitmproxy", self.wheel)
        works(home)
        home.run(pipx, "uninject", "mitmproxy", "mitmproxy-combos")
        assert programs(home) == ["mitmdump", "mitmproxy", "mitmweb"]

    def beside_uv_tool(self, uv: Path) -> None:
        """With a mitmproxy that uv installs as a tool."""
        home = Home(self.work / "uv-with")
        options = ["--python", sys.executable, "--with-executables-from", f"mitmproxy-combos @ {self.wheel.as_uri()}"]
        home.run(uv, "tool", "install", *options, "mitmproxy")
        works(home)
        home.run(uv, "tool", "uninstall", "mitmproxy")
        assert not programs(home)

    def by_uv_tool(self, uv: Path) -> None:
        """As a tool of its own, with mitmproxy's programs."""
        home = Home(self.work / "uv")
        home.run(uv, "tool", "install", "--python", sys.executable, "--with-executables-from", "mitmproxy", self.wheel)
        works(home)
        home.run(uv, "tool", "uninstall", "mitmproxy-combos")
        assert not programs(home)


def works(home: Home) -> None:
    """The version, the line of the README, and `ocx run`, which finds mitmproxy without PATH."""
    assert home.run("ocx", "--version").strip() == f"ocx, version {version()}"
    asks_the_demonstration(home, ["sh", "-c", WORKS, "sh"])
    asks_the_demonstration(home, ["ocx", "run"])


def programs(home: Home) -> list[str]:
    """What the home offers on PATH."""
    folder = home.folder / ".local" / "bin"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def same_wheel(wheel: Path, sdist: Path, work: Path) -> None:
    """The sdist holds all that a wheel is made of. Raises `AssertionError`."""
    again = build(work / "again", "wheel", unpack(sdist, work / "source"))
    assert content(again) == content(wheel), "the wheel of the sdist is another one"


def whole(wheel: Path) -> None:
    """The wheel holds the package, the entry file, and nothing else. Raises `AssertionError`."""
    odd = differences(wheel, version())
    assert not odd, "\n".join(odd)


def has_a_section() -> None:
    """The changelog says what this version brings. Raises `AssertionError`."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## {version()}" in text, f"CHANGELOG.md has no section for {version()}"


def tools(work: Path) -> tuple[Path, Path]:
    """pipx and uv, in an environment of their own."""
    home = Home(work / "tools")
    home.run(sys.executable, "-m", "venv", home.folder / "venv")
    home.run(home.folder / "venv" / "bin" / "pip", "install", "-q", "pipx", "uv")
    return home.folder / "venv" / "bin" / "pipx", home.folder / "venv" / "bin" / "uv"


def main(quick: bool, out: Path | None) -> int:
    """The number of checks that failed."""
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sdist, wheel = build(work / "built", "sdist"), build(work / "built", "wheel")
        print(f"built   {sdist.name}, {wheel.name}")
        checks.run("the changelog has a section for the version", has_a_section)
        checks.run("the wheel holds the package, the entry file and nothing else", lambda: whole(wheel))
        checks.run("the sdist builds the same wheel", lambda: same_wheel(wheel, sdist, work))
        ways = Ways(work, wheel)
        checks.run("into a venv that has mitmproxy; demonstration; uninstalled", ways.into_a_venv)
        if not quick:
            pipx, uv = tools(work)
            checks.run("pipx install", lambda: ways.by_pipx(pipx))
            checks.run("pipx install --include-deps", lambda: ways.by_pipx_with_dependencies(pipx))
            checks.run("pipx inject --include-apps mitmproxy", lambda: ways.injected_by_pipx(pipx))
            checks.run("uv tool install mitmproxy --with-executables-from", lambda: ways.beside_uv_tool(uv))
            checks.run("uv tool install --with-executables-from mitmproxy", lambda: ways.by_uv_tool(uv))
        if out is not None and not checks.failed:
            out.mkdir(exist_ok=True)
            for made in (sdist, wheel):
                shutil.copy(made, out)
    return checks.failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without pipx and uv")
    parser.add_argument("--out", type=Path, help="where to leave what was built, if everything holds")
    chosen = parser.parse_args()
    sys.exit(1 if main(chosen.quick, chosen.out) else 0)
