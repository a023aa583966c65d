"""Runs the matrix: every client through every entrance towards targets of every dialect. One line for each cell.

Without arguments the part that continuous integration runs; `--full` runs everything, `--only TEXT` the cells whose id
contains the text. `--record FILE` adds the results to a file, and `--write-docs FILE` makes docs/clients.md of it.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from cells import Cell, Setup, cells
from checks import CheckError, Stage
from document import DOCUMENT, faults, recorded, renewed
from drive import Outcome, run_cell, run_program, versions
from judge import judge

from upstream import Upstream

_AT_ONCE = 2
_LINE = 1_000
_ASIDES = ("claude", "opencode")
"""Clients that also ask for titles."""


@dataclass
class Stages:
    """One running proxy for each client, the libraries sharing one; started when it is first needed."""

    cells: Sequence[Cell]
    folder: Path
    stack: ExitStack
    made: dict[str, Stage | CheckError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def of(self, setup: Setup) -> Stage:
        """The proxy for a setup. One that did not start is not tried again."""
        name = _family(setup)
        with self._lock:
            if name not in self.made:
                try:
                    self.made[name] = self._start(name)
                except CheckError as wrong:
                    self.made[name] = wrong
            found = self.made[name]
        if isinstance(found, CheckError):
            raise found
        return found

    def _start(self, name: str) -> Stage:
        folder = self.folder / name
        folder.mkdir()
        upstream = Upstream()
        self.stack.callback(upstream.close)
        stage = Stage("", folder, upstream, tools_only=name in _ASIDES)
        for cell in self.cells:
            if _family(cell.setup) == name:
                stage.combo(cell.id, *cell.scripts, dialect=cell.dialect)
        self.stack.enter_context(stage.running())
        return stage


def _family(setup: Setup) -> str:
    return "libraries" if setup.program else setup.client


def units(chosen: Sequence[Cell]) -> list[list[Cell]]:
    """What is run in one go: the cells of a library's setup together, the others one by one."""
    made: dict[str, list[Cell]] = {}
    for cell in chosen:
        made.setdefault(cell.setup.id if cell.setup.program else cell.id, []).append(cell)
    return list(made.values())


@dataclass
class Results:
    """What came of the cells: nothing (it came out well), or what is wrong. Kept in the file `record` as well."""

    record: Path | None = None
    wrong: dict[str, str] = field(default_factory=dict)

    def note(self, cell: Cell, wrong: str, seconds: float = 0) -> None:
        """One line for a cell."""
        self.wrong[cell.id] = wrong
        if self.record is not None:
            with self.record.open("a") as file:
                file.write(json.dumps({"cell": cell.id, "wrong": wrong[:_LINE], "seconds": round(seconds, 2)}) + "\n")
        text = f"FAILED  matrix: {cell.id}: {wrong}" if wrong else f"ok      matrix: {cell.id}"
        print(" ".join(text.splitlines())[:_LINE], flush=True)


def run_unit(stages: Stages, results: Results, unit: Sequence[Cell]) -> None:
    """Run cells and judge them. What breaks has not passed, and the others are still to be run."""
    try:
        setup = unit[0].setup
        stage = stages.of(setup)
        outcomes = run_program(stage, setup, unit) if setup.program else [run_cell(stage, unit[0])]
    except Exception as wrong:
        for cell in unit:
            results.note(cell, f"{type(wrong).__name__}: {wrong}")
        return
    for cell, outcome in zip(unit, outcomes, strict=True):
        results.note(cell, _judged(stage, cell, outcome), outcome.seconds)


def _judged(stage: Stage, cell: Cell, outcome: Outcome) -> str:
    try:
        judge(stage, cell, outcome)
    except CheckError as wrong:
        return str(wrong)
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return ""


def run(chosen: Sequence[Cell], record: Path | None) -> Results:
    """Run these cells."""
    results = Results(record)
    with tempfile.TemporaryDirectory(prefix="combos-matrix-") as folder, ExitStack() as stack:
        stages = Stages(chosen, Path(folder), stack)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda unit: run_unit(stages, results, unit), units(chosen)))
    return results


def main(words: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Runs the matrix of clients.")
    parser.add_argument("--full", action="store_true", help="every cell, not the part of continuous integration")
    parser.add_argument("--only", default="", metavar="TEXT", help="the cells whose id contains the text")
    parser.add_argument("--record", type=Path, metavar="FILE", help="add the results to this file")
    parser.add_argument("--write-docs", type=Path, metavar="FILE", help="run nothing, renew docs/clients.md")
    parser.add_argument("--check-docs", type=Path, metavar="PAGE", help="run nothing, say what is wrong with the page")
    asked = parser.parse_args(words)
    if asked.check_docs is not None:
        wrong = faults(asked.check_docs.read_text())
        print("".join(f"{fault}\n" for fault in wrong), end="")
        return 1 if wrong else 0
    if asked.write_docs is not None:
        DOCUMENT.write_text(renewed(DOCUMENT.read_text(), recorded(asked.write_docs), versions()))
        return 0
    wanted = [cell for cell in cells() if asked.only in cell.id and (cell.in_ci or asked.full)]
    found = versions()
    for client in sorted({cell.setup.client for cell in wanted} - found.keys()):
        print(f"skipped matrix: {client}: it is not installed (./scripts/clients/install)", flush=True)
    results = run([cell for cell in wanted if cell.setup.client in found], asked.record)
    return 1 if any(results.wrong.values()) else 0


if __name__ == "__main__":
    # So that the proxies are stopped when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
