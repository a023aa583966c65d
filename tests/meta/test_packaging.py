"""The wheel holds the package and the entry file, alone in its folder, and `ocx addon-path` finds it there.

`./scripts/package` goes on from here: it installs the wheel in every documented way.
"""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import combos

ROOT = Path(__file__).parents[2]


def _load(name: str) -> Any:
    """A module of `./scripts/package`."""
    path = ROOT / "scripts" / "packaging" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"packaging_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


built = _load("built")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("mitmproxy_combos-*.whl")
    assert combos.__version__ in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_nothing_else(unpacked: Path) -> None:
    (wheel,) = unpacked.parent.glob("*.whl")
    assert built.differences(wheel, combos.__version__) == []


def test_a_file_too_much_and_one_too_few_are_seen(unpacked: Path, tmp_path: Path) -> None:
    """What the check itself is worth."""
    (wheel,) = unpacked.parent.glob("*.whl")
    other = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            if name != "combos/py.typed":
                target.writestr(name, source.read(name) + (b"#" if name == "combos/__init__.py" else b""))
        target.writestr("combos/loader/more.py", "")
    odd = built.differences(other, combos.__version__)
    assert odd == ["missing: combos/py.typed", "too much: combos/loader/more.py", "differs: combos/__init__.py"]


def test_the_sdist_builds_the_same_wheel(unpacked: Path, tmp_path: Path) -> None:
    (wheel,) = unpacked.parent.glob("*.whl")
    source = built.unpack(built.build(tmp_path / "sdist", "sdist"), tmp_path / "source")
    assert built.content(built.build(tmp_path / "again", "wheel", source)) == built.content(wheel)
    for name in ("scripts/setup", ".ci/run", "tests/meta/test_packaging.py", "requirements.lock", "docs/install.md"):
        assert (source / name).is_file()


def test_the_version_is_written_in_one_place_and_has_a_section_in_the_changelog() -> None:
    assert built.version() == combos.__version__
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
    assert re.search(rf"^## {re.escape(combos.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_entry_file_lies_alone_in_its_folder(unpacked: Path) -> None:
    assert [path.name for path in (unpacked / "combos" / "loader").iterdir()] == ["main.py"]
    assert (unpacked / "combos" / "loader" / "main.py").read_text() == (ROOT / "addon" / "main.py").read_text()


def test_the_wheel_is_typed_and_licensed(unpacked: Path) -> None:
    assert (unpacked / "combos" / "py.typed").exists()
    assert list(unpacked.glob("*.dist-info/licenses/LICENSE"))


def test_the_wheel_holds_the_dashboard(unpacked: Path) -> None:
    pages = Path("combos", "admin", "pages")
    packed = {path.name: path.read_bytes() for path in (unpacked / pages).iterdir()}
    assert packed == {path.name: path.read_bytes() for path in (ROOT / "addon" / pages).iterdir()}
    assert "index.html" in packed


def test_addon_path_from_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    program = "from combos.cli.main import main; main(['addon-path'])"
    printed = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert Path(printed) == (unpacked / "combos" / "loader" / "main.py").resolve()


def test_the_lock_names_versions_and_hashes_and_no_index() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert all("==" in line for line in pins)
    assert any("--hash=sha256:" in line for line in lines)
    assert not [line for line in lines if "://" in line or "--index" in line]


def test_every_dependency_is_in_the_lock() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {_name(requirement) for requirement in wanted}
    locked = {_name(line) for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line}
    assert names <= locked


def _name(requirement: str) -> str:
    for end in "<>=!; [\\":
        requirement = requirement.partition(end)[0]
    return requirement.strip().lower().replace(".", "-").replace("_", "-")
