"""Every command and every refusal, as recorded transcripts that are replayed."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from combos.cli.main import main
from configs import provider
from transcripts import FOLDER, replay

BROKEN = {"providers": {"a": {"adapter": "openai-chat"}}, "port": 99999}
WARNED = {
    "providers": {"a": provider(disabled=True, apikey="sk-canary-0123456789")},
    "combos": {"main": {"targets": [{"provider": "a", "model": "m"}]}},
}
OPENCODEX = {
    "$schema": "https://example.invalid/schema.json",
    "port": 10100,
    "hostname": "127.0.0.1",
    "defaultProvider": "openai",
    "theme": "dark",
    "providers": {
        "openai": {
            "adapter": "openai-responses",
            "baseUrl": "https://api.openai.com/v1",
            "apiKey": "${OPENAI_API_KEY}",
        },
        "local": {"adapter": "openai-chat", "baseUrl": "http://127.0.0.1:11434/v1", "note": "mine"},
        "exotic": {"adapter": "vendor-special", "baseUrl": "https://x.example"},
        "ring": {"adapter": "openai-chat", "baseUrl": "https://r.example/v1", "apiKey": "keychain:ring"},
        "login": {"adapter": "anthropic", "baseUrl": "https://api.anthropic.com", "authMode": "oauth"},
    },
    "combos": {
        "main": {
            "targets": [
                {"provider": "openai", "model": "gpt-5.6-sol", "priority": 1},
                {"provider": "exotic", "model": "m"},
            ]
        },
        "lost": {"targets": [{"provider": "exotic", "model": "m"}]},
        "twice": {"targets": [{"provider": "openai", "model": "m"}, {"provider": "openai", "model": "m"}]},
    },
    "disabledModels": ["combo/main", "openai/x"],
    "apiKeys": ["sk-canary-0123456789"],
    "usageLedgerMaxBytes": -1,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "broken.json").write_text(json.dumps(BROKEN))
    (tmp_path / "warned.json").write_text(json.dumps(WARNED))
    (tmp_path / "opencodex.json").write_text(json.dumps(OPENCODEX))
    (tmp_path / "dangling.json").symlink_to(tmp_path / "nowhere.json")
    return tmp_path


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.transcript"))])
def test_transcript(name: str, home: Path) -> None:
    recorded, replayed = replay(name, home)
    assert replayed == recorded
    assert "sk-canary-0123456789" not in "".join(line for line in replayed.splitlines() if not line.startswith("$ "))
    assert "Traceback" not in replayed


def commands(group: object = main, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    import click

    assert isinstance(group, click.Command)
    found = [path]
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            found += commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_help(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, [*path, "--help"], prog_name="ocx")
    assert done.exit_code == 0
    assert done.output.startswith(f"Usage: {' '.join(('ocx', *path))}")
    help_text = done.output.split("\n\n")[1]
    assert help_text.strip()


def test_every_command_is_in_a_transcript() -> None:
    text = "".join(path.read_text() for path in FOLDER.glob("*.transcript"))
    live = {("health",), ("ready",), ("run",), ("addon-path",), ("catalog",), ("config", "schema")}
    live |= {("dashboard",), ("explain-flow",)}  # tested elsewhere
    missing = [path for path in commands() if path and path not in live and f"ocx {' '.join(path)}" not in text]
    missing = [path for path in missing if path[0] != "route"]
    assert not missing


def test_the_schema_is_the_published_one() -> None:
    done = CliRunner().invoke(main, ["config", "schema"])
    assert json.loads(done.stdout) == json.loads(
        (Path(__file__).parents[2] / "config" / "combos.schema.json").read_text()
    )


def test_on_a_terminal_it_asks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("combos.cli.output.is_interactive", lambda: True)
    environ = {"COMBOS_CONFIG": str(home / "warned.json")}
    done = CliRunner().invoke(main, ["combo", "remove", "main"], input="n\n", env=environ)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "nothing was changed" in done.stderr
    done = CliRunner().invoke(main, ["combo", "remove", "main"], input="y\n", env=environ)
    assert done.exit_code == 0
    assert "combos" not in json.loads((home / "warned.json").read_text())


@pytest.mark.parametrize(
    ("words", "expected"), [("ocx combo show ma", "main"), ("ocx provider show ", "a"), ("ocx com", "combo")]
)
def test_completion(words: str, expected: str, home: Path) -> None:
    parts = words.split(" ")
    environ = {
        "_OCX_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(parts) - 1),
        "COMBOS_CONFIG": str(home / "warned.json"),
        "PATH": os.environ["PATH"],
    }
    done = CliRunner().invoke(main, [], env=environ, prog_name="ocx")
    assert f"plain,{expected}" in done.output


def test_completion_is_silent_without_a_usable_file(home: Path) -> None:
    environ = {
        "_OCX_COMPLETE": "bash_complete", "COMP_WORDS": "ocx combo show ", "COMP_CWORD": "3",
        "COMBOS_CONFIG": str(home / "broken.json"),
    }  # fmt: skip
    assert CliRunner().invoke(main, [], env=environ, prog_name="ocx").output.strip() == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "is not a JSON array of targets"),
        (b"{}", "is not a JSON array of targets"),
        (b"[1]", "is not a JSON array of targets"),
        (b"\xff\xfe", "is not a JSON array of targets"),
        (b"[" * 200_000, "is not a JSON array of targets"),
        (b'[{"a":' * 200_000, "is not a JSON array of targets"),
        (b'[{"provider":"a","provider":"b","model":"m"}]', "[0].provider: is written more than once"),
    ],
)
def test_a_file_of_targets_that_cannot_be_read(home: Path, text: bytes, says: str) -> None:
    file = home / "targets.json"
    file.write_bytes(text)
    arguments = ["combo", "set", "main", "--targets-file", str(file)]
    done = CliRunner().invoke(main, arguments, env={"COMBOS_HOME": str(home), "COMBOS_CONFIG": None})
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
    assert not (home / "config.json").exists()
