"""Links, anchors, pictures and named files of the documents lead somewhere, and every page can be reached."""

import re
from pathlib import Path, PurePosixPath

import pytest

from manual.markup import DOCUMENTS, ROOT, anchors, code_words, links
from manual.pages import PAGES


def targets(page: str) -> list[tuple[Path, str]]:
    """File and anchor of every link of a page that stays in the repository."""
    found = []
    for link in links(page):
        if "://" not in link:
            path, _, place = link.partition("#")
            found.append(((ROOT / page).parent / path if path else ROOT / page, place))
    return found


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_link_leads_to_a_file(page: str) -> None:
    assert [str(path) for path, _ in targets(page) if not path.exists()] == []


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_anchor_is_a_heading(page: str) -> None:
    named = [(str(path.resolve().relative_to(ROOT.resolve())), place) for path, place in targets(page) if place]
    assert [f"{name}#{place}" for name, place in named if place not in anchors(name)] == []


@pytest.mark.parametrize("page", DOCUMENTS)
def test_other_sites_are_linked_to_with_https(page: str) -> None:
    assert [link for link in links(page) if "://" in link and not link.startswith("https://")] == []


@pytest.mark.parametrize("page", [name for name in DOCUMENTS if name not in ("README.md", "docs/README.md")])
def test_every_page_is_in_the_index(page: str) -> None:
    assert PurePosixPath(page).name in links("docs/README.md")


def test_every_picture_is_shown() -> None:
    shown = {path.resolve() for page in DOCUMENTS for path, _ in targets(page)}
    pictures = [path for path in (ROOT / "docs" / "images").iterdir() if path.suffix == ".png"]
    assert [path.name for path in pictures if path.resolve() not in shown] == []


FILES = re.compile(r"\.?/?((?:config|docs|scripts|addon|tests|\.ci)/[\w./-]+[\w/])")


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_named_file_exists(page: str) -> None:
    named = [match[1] for word in code_words(page) if (match := FILES.fullmatch(word.split(" ")[0]))]
    assert [name for name in named if not (ROOT / name).exists()] == []


MODULES = re.compile(r"((?:core|wire|engine|decision|upstream|admin|mitm|cli)/[\w/]+\.py)")


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_named_module_exists(page: str) -> None:
    named = [match[1] for word in code_words(page) for match in [MODULES.fullmatch(word)] if match]
    assert [name for name in named if not (ROOT / "addon" / "combos" / name).exists()] == []


def test_the_generated_pages_are_named_as_such() -> None:
    index = DOCUMENTS["docs/README.md"]
    for page in PAGES:
        name = PurePosixPath(page).name
        assert not page.startswith("docs/") or re.search(rf"\({re.escape(name)}\) \(generated\)", index), page


TESTS = {
    path.relative_to(ROOT).as_posix(): set(
        re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    for path in (ROOT / "tests").rglob("test_*.py")
}
NAMED = re.compile(r"(?:(tests/[\w/]+\.py)::)?(test_\w+)")


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_named_test_exists(page: str) -> None:
    named = [match.groups() for word in code_words(page) if (match := NAMED.fullmatch(word))]
    everywhere = set().union(*TESTS.values())
    assert [name for file, name in named if name not in (TESTS.get(file, ()) if file else everywhere)] == []
