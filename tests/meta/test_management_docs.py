"""The management API and the command line are documented as they are."""

import re
from pathlib import Path

import pytest

from adminstage import stage

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "management.md").read_text()
ADMIN = "\n".join(path.read_text() for path in (ROOT / "addon" / "combos" / "admin").glob("*.py"))


async def test_every_route_is_documented_and_no_other(tmp_path: Path) -> None:
    async with stage(tmp_path / "config.json", {}) as api:
        served = {f"{route.method} {route.path}" for route in api.server.routes()}
    documented = set(re.findall(r"^\| `((?:GET|PUT|POST|PATCH|DELETE) [^?\[`]+)", PAGE, re.MULTILINE))
    assert documented == served


@pytest.mark.parametrize(
    "code",
    sorted(
        set(
            re.findall(
                r"""(?:invalid|not_found|conflict|error|RefusalError)\(
    [^()]*(?:\([^()]*\)[^()]*)*?,\s"([a-z_]+)\"""",
                ADMIN,
                re.VERBOSE,
            )
        )
    ),
)
def test_every_code_is_documented(code: str) -> None:
    assert f"`{code}`" in PAGE


@pytest.mark.parametrize("kind", sorted(set(re.findall(r'\.publish\("([a-z_]+)"', ADMIN))))
def test_every_event_is_documented(kind: str) -> None:
    assert f"| `{kind}` |" in PAGE
