"""Generated pages are current, and what they are made from is whole."""

import inspect
import re

import pytest

from combos.core import errors
from combos.core.config import config_warnings, parse_config, save_problems
from combos.core.config_schema import json_schema
from combos.mitm import own_address
from manual import examples
from manual.environment import VARIABLES
from manual.own_errors import OWN_ERRORS
from manual.pages import PAGES, ROOT

SOURCES = [*(ROOT / "addon").rglob("*.py"), *(path for path in (ROOT / "scripts").iterdir() if path.is_file())]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_current(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "./scripts/docs writes it"


def test_the_example_is_a_configuration_without_faults() -> None:
    made = parse_config(examples.DOCUMENT)
    assert save_problems(made) == ()
    idle = {problem.path for problem in config_warnings(made)}
    assert {path.rpartition(".")[2] for path in idle} == {
        "blockedModelRedirects",
        "modelDefaultReasoningEfforts",
        "pinnedReasoningEffort",
        "requestPacing",
    }


def fields_of(value: object) -> set[str]:
    """Every key anywhere in a document."""
    match value:
        case dict():
            return {str(key) for key in value}.union(*(fields_of(member) for member in value.values()))
        case list():
            return set().union(*(fields_of(member) for member in value))
        case _:
            return set()


def test_the_example_shows_every_field() -> None:
    schema = json_schema()
    parts = [part for found in (schema, *schema["$defs"].values()) for part in (found, *found.get("anyOf", ()))]
    fields = {key for part in parts for key in part.get("properties", {})}
    assert fields - fields_of(examples.DOCUMENT) == set()


def own_error_makers() -> list[str]:
    makers = inspect.getmembers(errors, inspect.isfunction)
    return [name for name, maker in makers if maker.__annotations__.get("return") is errors.ProxyError]


def test_every_error_of_the_proxy_is_explained() -> None:
    source = (ROOT / "tests" / "manual" / "own_errors.py").read_text(encoding="utf-8")
    assert len(own_error_makers()) > 10
    assert [name for name in own_error_makers() if f"errors.{name}(" not in source] == []


def test_every_answer_of_the_own_address_is_explained() -> None:
    source = inspect.getsource(own_address)
    made = set(re.findall(r'_error\((\d+), .*?"(\w+)"\)', source))
    assert len(made) > 2
    assert made - {(str(row.error.status), row.error.code) for row in OWN_ERRORS} == set()


def test_every_error_that_another_place_makes_is_explained() -> None:
    made = {found for path in SOURCES for found in re.findall(r'ProxyError\((\d+), "\w+", "(\w+)"', path.read_text())}
    assert len(made) > 3
    assert made - {(str(row.error.status), row.error.code) for row in OWN_ERRORS} == set()


def test_no_error_is_without_a_remedy() -> None:
    assert all(row.when and row.remedy for row in OWN_ERRORS)


def mentioned() -> set[str]:
    pattern = re.compile(r"\b(_?(?:COMBOS|OCX)_[A-Z_]+|(?:TYPESAFE|JEV)_API_KEY|NO_COLOR|PYENV_ROOT)\b")
    return {name for path in SOURCES for name in pattern.findall(path.read_text(encoding="utf-8"))}


def test_every_environment_variable_is_documented_and_no_other() -> None:
    documented = {row.name for row in VARIABLES if row.reader != "tests" and not row.name.startswith("<")}
    known = {*documented, *(row.name for row in VARIABLES)}
    assert mentioned() - known == set()
    assert documented - mentioned() - {"NO_COLOR", "_OCX_COMPLETE"} == set(), "these are click's and rich's"
