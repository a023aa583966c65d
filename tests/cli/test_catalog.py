"""`ocx catalog`: three shapes from the file, messages on the error stream, exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from catalogs import provider, targets
from combos.cli.main import main

DOCUMENT = {
    "providers": {"up": provider(models=["m"]), "sound": provider(modelInputModalities={"m": ["audio"]})},
    "combos": {
        "main": {"targets": targets("up/m"), "displayName": "Größe"},
        "deaf": {"targets": targets("up/m", "sound/m")},
    },
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "config.json"
    found.write_text(json.dumps(DOCUMENT))
    return found


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["catalog", "--config", str(path), *arguments])


@pytest.mark.parametrize(
    ("flags", "key", "id_key", "ids"),
    [
        ([], "data", "id", ["combo/main", "up/m"]),
        (["--openai"], "data", "id", ["combo/main", "up/m"]),
        (["--codex"], "models", "slug", ["combo/main", "up/m"]),
        (["--anthropic"], "data", "id", ["claude-ocx-combo--main", "claude-ocx-up--m"]),
    ],
)
def test_shapes(path: Path, flags: list[str], key: str, id_key: str, ids: list[str]) -> None:
    done = run(path, *flags)
    assert done.exit_code == 0
    assert [row[id_key] for row in json.loads(done.stdout)[key]] == ids


def test_what_is_not_listed_is_said_aside(path: Path) -> None:
    done = run(path, "--codex")
    assert done.stderr == "combo/deaf is not listed: no_common_input_modality\n"
    assert "Größe" in done.stdout


def test_json_is_one_line(path: Path) -> None:
    assert run(path, "--json").stdout.count("\n") == 1
    assert run(path).stdout.count("\n") > 10


def test_combos_are_added_to_a_list_that_is_given(path: Path, tmp_path: Path) -> None:
    base = tmp_path / "bundled.json"
    base.write_text('{"models":[{"slug":"gpt-5.5","priority":1,"base_instructions":"You are Codex."}]}')
    models = json.loads(run(path, "--codex", "--into", str(base)).stdout)["models"]
    assert [row["slug"] for row in models] == ["gpt-5.5", "combo/main"]
    assert models[1]["base_instructions"] == "You are Codex."


@pytest.mark.parametrize("text", ["not json", "", "[" * 200_000, '{"a":' * 200_000])
def test_a_list_that_is_no_json(path: Path, tmp_path: Path, text: str) -> None:
    base = tmp_path / "bundled.json"
    base.write_text(text)
    done = run(path, "--codex", "--into", str(base))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "--into is not JSON" in done.stderr


def test_the_path_of_the_environment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMBOS_CONFIG", str(path))
    assert "combo/main" in CliRunner().invoke(main, ["catalog"]).stdout


def test_no_file(tmp_path: Path) -> None:
    done = run(tmp_path / "absent.json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "absent.json does not exist" in done.stderr


def test_no_readable_file(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.exit_code == 1
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize("text", ["{", '{"combos":{"x":{"targets":[]}}}'])
def test_a_file_that_is_not_valid(path: Path, text: str) -> None:
    path.write_text(text)
    done = run(path)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "is not valid" in done.stderr


def test_an_unknown_flag_is_a_usage_error(path: Path) -> None:
    assert run(path, "--gemini").exit_code == 2
