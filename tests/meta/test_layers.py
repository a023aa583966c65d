"""Layers import downwards only, and the pure ones know no clock, no randomness, no environment and no event loop."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "addon" / "combos"

BELOW = {
    "core": {"core"},
    "wire": {"core", "wire"},
    "engine": {"core", "wire", "engine"},
    "decision": {"core", "wire", "engine", "decision"},
    "upstream": {"core", "wire", "engine", "decision", "upstream"},
    "mitm": {"core", "wire", "engine", "decision", "upstream", "admin", "mitm"},
    "admin": {"core", "wire", "engine", "decision", "upstream", "admin"},
    "cli": {"core", "admin", "cli"},
}
PURE = ("core", "wire", "engine", "decision")
FORBIDDEN_IN_PURE = {
    "aiohttp",
    "asyncio",
    "logging",
    "mitmproxy",
    "os",
    "random",
    "secrets",
    "socket",
    "threading",
    "time",
    "uuid",
}
FORBIDDEN_CALLS_IN_PURE = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "open"}
LIBRARIES = {
    "core": {"pydantic", "pydantic_core", "cachetools"},
    "engine": {"orjson"},
    "decision": {"orjson", "pydantic"},
}


def sources(layer: str) -> list[Path]:
    return sorted((PACKAGE / layer).rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_imports_only_what_lies_below(layer: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sources(layer)
        for name in imported(parse(path))
        if name.startswith("combos.") and name.split(".")[1] not in BELOW[layer]
    ]
    assert not wrong


def test_every_package_is_a_known_layer() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= set(BELOW)
    assert set(PURE) - {"decision"} <= packages


@pytest.mark.parametrize("layer", PURE)
def test_a_pure_layer_touches_nothing_outside(layer: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sources(layer)
        for name in imported(parse(path))
        if name.split(".")[0] in FORBIDDEN_IN_PURE
    ]
    assert not wrong


@pytest.mark.parametrize("layer", PURE)
def test_a_pure_layer_calls_no_clock_and_opens_no_file(layer: str) -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} calls {ast.unparse(node.func)}"
        for path in sources(layer)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS_IN_PURE
    ]
    assert not wrong


@pytest.mark.parametrize("layer", LIBRARIES)
def test_a_pure_layer_uses_only_its_libraries(layer: str) -> None:
    known = LIBRARIES[layer] | {"combos"} | set(_standard_library())
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sources(layer)
        for name in imported(parse(path))
        if name.split(".")[0] not in known
    ]
    assert not wrong


def _standard_library() -> frozenset[str]:
    import sys

    return frozenset(sys.stdlib_module_names)


def test_only_the_mitm_layer_imports_mitmproxy() -> None:
    wrong = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "mitm"
        and any(n.split(".")[0] == "mitmproxy" for n in imported(parse(path)))
    ]
    assert not wrong


def test_what_is_imported_is_declared() -> None:
    """A library that comes with another one today may be gone with its next version."""
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    wanted = (*project["dependencies"], *project["optional-dependencies"]["redis"])
    declared = {re.match(r"[\w.-]+", row)[0].lower().replace("-", "_") for row in wanted}  # type: ignore[index]
    known = declared | {"combos", "backports", "pydantic_core"} | _standard_library()  # the last is pydantic's own half
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in PACKAGE.rglob("*.py")
        for name in imported(parse(path))
        if name.split(".")[0] not in known | {"compression"}  # of Python 3.14
    ]
    assert not wrong


def test_the_mode_of_files_is_said_once() -> None:
    written = [path.name for path in PACKAGE.rglob("*.py") if "0o600" in path.read_text()]
    assert written == ["regular_file.py"]


def test_the_entry_files_folder_holds_nothing_that_could_shadow_a_module() -> None:
    found = {path.name for path in PACKAGE.parent.iterdir()} - {"__pycache__"}
    assert found == {"main.py", "combos"}


def test_no_module_keeps_mutable_state() -> None:
    def is_state(node: ast.stmt) -> bool:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call):
            return ast.unparse(value.func) in {"dict", "list", "set", "deque", "defaultdict", "OrderedDict"}
        empty = (isinstance(value, ast.Dict) and not value.keys) or (
            isinstance(value, ast.List | ast.Set) and not value.elts
        )
        return isinstance(node, ast.Assign | ast.AnnAssign) and empty

    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in parse(path).body
        if is_state(node)
    ]
    assert not wrong
