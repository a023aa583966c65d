"""Finds the laws in `tests/fuzz` and runs each in a process of its own under atheris for a given time.

Prints one line per law: how many inputs were tried, how many branches of the sources they reached, and what broke.
"""

import argparse
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".venv" / "atheris" / "inputs"
_DONE = re.compile(r"cov: (\d+) .*?exec/s: (\d+) rss: (\d+)Mb")


def laws() -> Iterator[tuple[str, str]]:
    """Module and function of every law."""
    for path in sorted((ROOT / "tests" / "fuzz").glob("test_*.py")):
        for name in re.findall(r"^@law\n(?:.*\n)*?def (test_\w+)", path.read_text(), re.MULTILINE):
            yield path.stem, name


def run_one(module: str, name: str, arguments: list[str]) -> None:
    """The process of one law; libFuzzer ends it."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["combos"]):
        found = getattr(importlib.import_module(module), name)
    atheris.Setup([sys.argv[0], *arguments], found.hypothesis.fuzz_one_input)
    atheris.Fuzz()


def fuzz(module: str, name: str, seconds: int) -> bool:
    """Run one law and say how it went; whether it held."""
    folder = KEPT / f"{module}.{name}"
    folder.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=1500", "-len_control=20"]
    options += [f"-artifact_prefix={folder.parent}/{name}-", str(folder)]
    done = subprocess.run(
        [sys.executable, __file__, "--one", module, name, *options], capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    tried = re.search(r"Done (\d+) runs", text)
    seen = _DONE.findall(text)
    coverage = f"{seen[-1][0]} branches, {seen[-1][2]} MiB" if seen else "no input"
    print(f"{name[5:]:76} {tried[1] if tried else '-':>8} inputs, {coverage}", flush=True)
    if done.returncode == 0:
        return True
    print(text.partition("=== Uncaught")[2][:6000] or "\n".join(text.splitlines()[-20:]), flush=True)
    return False


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2], sys.argv[3], sys.argv[4:])
        return 0
    parser = argparse.ArgumentParser(prog="scripts/fuzz/run")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    chosen = [one for one in laws() if all(word in ".".join(one) for word in asked.words)]
    if not chosen:
        print("No law has a name with these words.", file=sys.stderr)
        return 2
    held = [fuzz(module, name, round(asked.minutes * 60)) for module, name in chosen]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
