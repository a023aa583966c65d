"""Runs pip-audit over lock files and says what came of it; then the licences of what is installed.

pip-audit ends well when no database knew a package: here that is not taken for an answer.
"""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

SERVICES = ("pypi", "osv")
NONE_KNOWN, SOME_KNOWN, UNKNOWN = 0, 1, 3
LIMIT_S = 300


def asked(tool: str, service: str, lock: str) -> list[dict[str, Any]]:
    """The packages of a lock with what a database knows of them; empty when it could not be asked."""
    command = [tool, "-r", lock, "--disable-pip", "--progress-spinner", "off", "-f", "json", "-s", service]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        found = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return []
    return list(found) if any("skip_reason" not in one for one in found) else []


def audited(tool: str, lock: str) -> int:
    """Ask the databases in turn until one answers, and print what it said."""
    for service in SERVICES:
        found = asked(tool, service, lock)
        if found:
            break
    else:
        print(f"{lock}: NOT AUDITED: no database of weaknesses could be asked ({', '.join(SERVICES)})")
        return UNKNOWN
    skipped = [one["name"] for one in found if "skip_reason" in one]
    weak = [one for one in found if one.get("vulns")]
    print(f"{lock}: {len(found) - len(skipped)} packages looked up at {service}, {len(weak)} with known weaknesses")
    if skipped:
        print(f"  not known there: {', '.join(skipped)}")
    for one in weak:
        for entry in one["vulns"]:
            print(
                f"  {one['name']} {one['version']}: {entry['id']}, mended in {', '.join(entry['fix_versions']) or '-'}"
            )
    return SOME_KNOWN if weak else UNKNOWN if skipped else NONE_KNOWN


def licences() -> Iterator[str]:
    """One line per licence with the packages that are under it."""
    under: dict[str, list[str]] = {}
    for package in importlib.metadata.distributions():
        under.setdefault(_licence(package.metadata), []).append(package.metadata["Name"])
    for licence, names in sorted(under.items()):
        yield f"{licence}: {', '.join(sorted(names, key=str.lower))}"


def _licence(metadata: Any) -> str:
    classes = [
        one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier") or () if one.startswith("License ::")
    ]
    said = metadata.get("License-Expression") or ", ".join(classes) or (metadata.get("License") or "").split("\n")[0]
    return said or "not stated"


def main(arguments: Sequence[str]) -> int:
    tool, *locks = arguments
    codes = [audited(tool, lock) for lock in locks]
    print("\nLicences:")
    print("\n".join(f"  {line}" for line in licences()))
    return next((code for code in (SOME_KNOWN, UNKNOWN) if code in codes), NONE_KNOWN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
