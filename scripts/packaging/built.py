"""Builds sdist and wheel, and says what is in them."""

import hashlib
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST_INFO = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def build(folder: Path, target: str, source: Path = ROOT) -> Path:
    """One of `sdist` and `wheel`, made from `source`. Needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def unpack(sdist: Path, folder: Path) -> Path:
    """The folder that the sdist holds."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (made,) = folder.iterdir()
    return made


def content(wheel: Path) -> dict[str, str]:
    """Path → digest of everything in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def expected(version: str) -> dict[str, str]:
    """Path → digest of what a wheel is to hold of the checkout; of its metadata the paths only."""
    package = ROOT / "addon" / "combos"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    found = {f"combos/{path.relative_to(package).as_posix()}": path for path in files}
    found["combos/loader/main.py"] = ROOT / "addon" / "main.py"
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()}
    return digests | {f"mitmproxy_combos-{version}.dist-info/{name}": "" for name in DIST_INFO}


def differences(wheel: Path, version: str) -> list[str]:
    """What is missing in the wheel, too much, or another file."""
    has, wanted = content(wheel), expected(version)
    odd = [f"missing: {name}" for name in sorted(wanted.keys() - has.keys())]
    odd += [f"too much: {name}" for name in sorted(has.keys() - wanted.keys())]
    return odd + [f"differs: {name}" for name, digest in wanted.items() if digest and has.get(name, digest) != digest]


def version() -> str:
    """The version, from the one place where it is written."""
    text = (ROOT / "addon" / "combos" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found, "addon/combos/__init__.py names no version"
    return found[1]
