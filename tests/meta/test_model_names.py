"""The table of model names is what the registry says, with the configuration that the reference shows."""

import re

import pytest

from combos.core.config import parse_config
from combos.core.registry import ComboRoute, DirectRoute, Registry, UnknownCombo, build_registry
from manual.examples import DOCUMENT
from manual.markup import DOCUMENTS

ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| (everywhere|own address) \|$", re.MULTILINE)
ROWS = ROW.findall(DOCUMENTS["docs/models.md"])


@pytest.fixture(scope="module")
def names() -> Registry:
    return build_registry(parse_config(DOCUMENT), 1)


def said(route: object) -> str:
    match route:
        case ComboRoute(combo=combo):
            return f"combo `{combo.id}`"
        case DirectRoute(target=target):
            return f"`{target.key}`"
        case UnknownCombo():
            return "404"
    return "nothing"


def test_there_are_rows() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize(("name", "leads_to", "where"), ROWS)
def test_a_name_leads_where_the_table_says(names: Registry, name: str, leads_to: str, where: str) -> None:
    explicit = names.resolve(name)
    assert said(explicit) == (leads_to if where == "everywhere" else "nothing")
    if explicit is None:
        assert said(names.resolve_bare(name)) == leads_to
