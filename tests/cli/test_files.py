"""What lies where the configuration is expected and is none: every command that reads it says so, at once."""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from combos.cli.main import main
from configs import TARGET, document, provider

READING = (
    ["config", "validate"],
    ["config", "show"],
    ["combo", "list"],
    ["provider", "list"],
    ["catalog"],
    ["explain", "main", "--offline"],
    ["combo", "set", "main", "--targets", "alpha/m"],
)


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


def written(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "it is not a regular file"),
    "folder": (Path.mkdir, "it is not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
    "looping": (lambda path: path.symlink_to(path), "ymbolic link"),
    "endless": (endless, "the file is larger than 16777216 bytes"),
    "binary": (written(bytes(range(256))), "the file is not UTF-8 text"),
    "empty": (written(b""), "the file is empty"),
    "nested": (written(b"[" * 100_000), "the file is nested too deeply"),
    "cut": (written(json.dumps(document()).encode()[:-9]), "line 1, column"),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_what_is_no_configuration_is_said(kind: str, command: list[str], tmp_path: Path) -> None:
    make, reason = FILES[kind]
    path = tmp_path / "config.json"
    make(path)
    done = CliRunner().invoke(main, command, env={"COMBOS_CONFIG": str(path)}, prog_name="ocx")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert str(path) in done.stderr
    assert reason in done.stderr


def test_a_file_that_was_named_may_be_a_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, json.dumps(document()).encode())
    os.close(writing)
    done = CliRunner().invoke(main, ["config", "validate", f"/dev/fd/{reading}"], prog_name="ocx")
    os.close(reading)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("command", [*READING, ["state"], ["usage"], ["config", "path"]], ids=" ".join)
def test_without_a_home_directory_it_is_said_what_to_set(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_user: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    unset = dict.fromkeys(("HOME", "COMBOS_HOME", "COMBOS_CONFIG"))
    done = CliRunner().invoke(main, command, env=unset, prog_name="ocx")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "set HOME or COMBOS_HOME" in done.stderr


def test_a_template_that_could_not_be_stored_is_not_printed(tmp_path: Path) -> None:
    for row, arguments in itertools.product(({}, {"openai": provider(models=["other"])}), ([], ["--json"], ["--save"])):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(document(providers={"alpha": provider(), **row})))
        done = CliRunner().invoke(main, ["combo", "jev-auto", *arguments, "--config", str(path)])
        assert (done.exit_code, done.stdout) == (1, "")
        assert "none of its targets can be used here: openai/gpt-" in done.stderr
        assert "jev-auto" not in json.loads(path.read_text())["combos"]


NEEDING = (
    ["config", "validate"],
    ["config", "show"],
    ["config", "show", "--origin"],
    ["combo", "list"],
    ["combo", "show", "main"],
    ["combo", "remove", "main", "--yes"],
    ["combo", "test"],
    ["combo", "discover"],
    ["combo", "jev-auto"],
    ["provider", "list"],
    ["provider", "show", "alpha"],
    ["provider", "edit", "alpha", "--disable"],
    ["provider", "remove", "alpha", "--yes"],
    ["provider", "set-default", "alpha"],
    ["provider", "test", "alpha"],
    ["catalog"],
    ["explain", "main"],
)


@pytest.mark.parametrize("command", NEEDING, ids=" ".join)
def test_a_file_that_was_named_and_is_not_there_is_not_taken_for_an_empty_one(
    command: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "nope.json"
    for arguments, environ in ((command, str(path)), ([*command, "--config", str(path)], None)):
        done = CliRunner().invoke(main, arguments, env={"COMBOS_CONFIG": environ, "COMBOS_HOME": str(tmp_path)})
        assert (done.exit_code, done.stdout) == (1, "")
        assert f"{path}" in done.stderr
        assert "does not exist" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("origin", ["COMBOS_CONFIG", "--config"])
def test_who_named_the_missing_file_is_said(origin: str, tmp_path: Path) -> None:
    path = tmp_path / "nope.json"
    flag = ["--config", str(path)] if origin == "--config" else []
    environ = {"COMBOS_CONFIG": None if flag else str(path)}
    done = CliRunner().invoke(main, ["combo", "list", *flag], env=environ)
    assert done.stderr == f"Error: {path} (from {origin}) does not exist\n"


def test_the_commands_that_make_the_file_make_a_named_one(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    done = CliRunner().invoke(main, ["provider", "add", "openai"], env={"COMBOS_CONFIG": str(path)})
    assert done.exit_code == 0
    assert path.exists()


def test_what_cannot_be_looked_at_is_not_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(main, ["combo", "list"], env={"COMBOS_CONFIG": str(tmp_path / "file" / "config.json")})
    assert done.exit_code == 1
    assert "Not a directory" in done.stderr


def test_a_missing_file_that_a_command_names_is_no_reason_to_add_a_provider(tmp_path: Path) -> None:
    path = str(tmp_path / "nope.json")
    for arguments in (["config", "validate", path], ["config", "validate", "--config", path]):
        done = CliRunner().invoke(main, arguments, env={"COMBOS_CONFIG": None})
        assert (done.exit_code, done.stderr) == (1, f"Error: {path} does not exist\n")
    done = CliRunner().invoke(main, ["config", "validate"], env={"COMBOS_CONFIG": path})
    assert done.stderr == f"Error: {path} does not exist\nTry: ocx provider add openai\n"


def test_every_setting_of_the_file_is_shown_with_its_origin_and_no_secret(tmp_path: Path) -> None:
    made = document(
        port=10200,
        apiKeys=["canary-of-an-admission-key"],
        providers={
            "alpha": provider(headers={"x-canary": "canary-value"}, apiKey="canary-of-a-key"),
            "b.c": provider(),
        },
        combos={"main": {"targets": [TARGET], "strategy": "random"}},
        disabledModels=["alpha/x", "alpha/y"],
    )
    path = tmp_path / "config.json"
    path.write_text(json.dumps(made))
    done = CliRunner().invoke(main, ["config", "show", "--origin", "--json", "--config", str(path)])
    rows = {row["setting"]: (row["value"], row["origin"]) for row in json.loads(done.stdout)["settings"]}
    assert rows["port"] == ("10200", "file")
    assert rows["hostname"] == ('"127.0.0.1"', "default")
    assert rows["disabledModels"] == ('["alpha/x", "alpha/y"]', "file")
    assert rows["combos.main.targets[0].model"] == ('"m1"', "file")
    assert rows["combos.main.strategy"] == ('"random"', "file")
    assert rows["providers.alpha.headers.x-canary"] == ('"****"', "file")
    assert rows["providers.alpha.apiKey"] == ("cana****-key", "file")
    assert rows['providers["b.c"].adapter'][1] == "file"
    assert {"apiKeys", "providers.alpha.baseUrl"} <= set(rows)
    assert "canary-of" not in done.output
    assert "canary-value" not in done.output
