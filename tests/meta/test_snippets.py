"""Snippets of the documents are what they are called: JSON that the models take, TOML, YAML, Python, known commands."""

import json
import re
import shlex
import subprocess
import tomllib
from io import StringIO

import click
import pytest
from ruamel.yaml import YAML

from combos.admin.shapes import ErrorAnswer
from combos.cli.main import main
from combos.core.config import Config, parse_config, unknown_keys
from combos.core.config_document import key_names
from e2e.proxyprocess import MITMDUMP
from manual import examples
from manual.markup import DOCUMENTS, Block, blocks, code_words, commands

KINDS = {"console", "sh", "json", "toml", "yaml", "python", "text", ""}
"""Blocks without a word behind the fence are drawings and texts of other programs."""


def test_every_block_says_what_it_is() -> None:
    assert [str(block) for block in blocks() if block.kind not in KINDS] == []


def test_a_plain_block_is_no_snippet() -> None:
    assert [str(block) for block in blocks("") if block.text.startswith(("$ ", "{", "["))] == []


ONLY_READ = {"docs/api.md": "answers of real calls", "docs/clients.md": "files of clients, which checks of them use"}
"""Pages whose JSON is no configuration of ours."""


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_a_configuration_or_an_answer(block: Block) -> None:
    text = block.text if block.text.lstrip().startswith(("{", "[")) else f"{{{block.text}}}"
    document = json.loads(text)
    if block.page in ONLY_READ:
        return
    if set(document) <= {*key_names(Config).values()}:
        named = {"providers": {**examples.DOCUMENT["providers"], **document.get("providers", {})}}
        assert unknown_keys(parse_config(document | named)) == (), "with the providers of the example"
    else:
        assert ErrorAnswer.model_validate(document)


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_settings_for_a_shell_are_taken_by_one(block: Block) -> None:
    subprocess.run(["bash", "-euc", block.text], check=True)


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml_can_be_read(block: Block) -> None:
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_can_be_read(block: Block) -> None:
    assert YAML(typ="safe").load(StringIO(block.text))


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_can_be_compiled(block: Block) -> None:
    assert compile(block.text, str(block), "exec")


def ocx_lines() -> list[tuple[str, str]]:
    """Every use of `ocx`, in blocks and in prose."""
    typed = [(block.page, command.line) for block in blocks("console") for command in commands(block)]
    said = [(page, word) for page in DOCUMENTS for word in code_words(page)]
    found = []
    for page, line in typed + said:
        match = re.search(r"(?:^|[ /(])ocx( [^;|>)`]*)?$|^(?:\S*/)?ocx( .*)?$", line)
        if match:
            found.append((page, (match[1] or match[2] or "").strip()))
    return found


def known(line: str) -> bool:
    """Whether the words lead to a command of `ocx`, and its options are its own."""
    command: click.Command = main
    for word in shlex.split(line):
        if isinstance(command, click.Group) and not word.startswith(("-", "<", "…")):
            found = command.commands.get(word)
            if found is None:
                return False
            command = found
        elif word.startswith("--") and not command.context_settings.get("ignore_unknown_options"):
            options = [name for part in command.params for name in (*part.opts, *part.secondary_opts)]
            if word.partition("=")[0] not in (*options, "--help"):
                return False
    return True


def test_there_are_uses_of_ocx() -> None:
    assert len(ocx_lines()) > 40


@pytest.mark.parametrize(("page", "line"), sorted(set(ocx_lines())))
def test_every_use_of_ocx_is_one(page: str, line: str) -> None:
    assert known(line)


@pytest.fixture(scope="module")
def options() -> set[str]:
    """What `--set` takes in mitmdump without our addon."""
    done = subprocess.run([MITMDUMP, "--options"], capture_output=True, text=True, check=True)
    return set(re.findall(r"^(\w+):", done.stdout, re.MULTILINE))


def test_every_option_that_is_set_exists(options: set[str]) -> None:
    used = {name for text in DOCUMENTS.values() for name in re.findall(r"--set (\w+)=", text)} - {"name"}
    assert len(used) > 3
    assert {name for name in used if not name.startswith("combos_")} <= options
