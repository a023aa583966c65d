"""Runs a client for one cell, or a library's program for many, and tells what its user saw."""

import base64
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers import EDITED
from cells import FORWARD, MANAGEMENT, PACKAGES, Cell, Setup
from checks import BIN, CLIENTS, LIMIT_S, ROOT, Stage, run_client
from world import ACCOUNT

HERE = Path(__file__).parent
MODULES = ROOT / ".venv" / "clients" / "node_modules"
AIDER = ROOT / ".venv" / "aider" / "bin"
_TURN_S = 10
OWN_KEY = "my-own-key"
LOGIN_KEY = "my-login-key"
SHOWN = ("127.0.0.1:8080", "combo/main")
"""The address and the model in the files under `setups/`, in whose place those of the run are put."""


@dataclass
class Outcome:
    """What a client's user saw: the answer, or why there is none."""

    text: str
    failed: str
    seconds: float


def setup_text(name: str, address: str, model: str) -> str:
    """A file under `setups/` for this proxy and model."""
    text = (HERE / "setups" / name).read_text()
    return text.replace(SHOWN[0], address).replace(SHOWN[1], model)


def environment(stage: Stage, setup: Setup, home: Path, model: str) -> dict[str, str]:
    """Put the setup's files in place and give the environment that its shell lines make.

    Everything else that the client asks for goes to the proxy as well, so that it reaches no network.
    """
    (home / ".mitmproxy").symlink_to(stage.ca.parent)
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    port = stage.management_port if setup.entrance == MANAGEMENT else stage.port
    lines = []
    for name in setup.files:
        text = setup_text(name, f"127.0.0.1:{port}", model)
        if name.endswith(".toml"):
            (home / ".codex").mkdir()
            (home / ".codex" / "config.toml").write_text(text)
        elif name.endswith(".json"):
            (home / "work" / "opencode.json").write_text(text)
        else:
            lines.append(text)
    shell = subprocess.run(
        ["bash", "-euc", "".join(lines) + "env -0"], env=environ, capture_output=True, text=True, check=True
    )
    pairs = dict(pair.split("=", 1) for pair in shell.stdout.split("\0") if "=" in pair)
    exported = {name: value for name, value in pairs.items() if name not in ("PWD", "OLDPWD", "SHLVL", "_")}
    if setup.entrance != FORWARD:
        address = f"http://127.0.0.1:{stage.port}"
        ca = {name: str(stage.ca) for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE")}
        exported = {"HTTPS_PROXY": address, "HTTP_PROXY": address, **ca, **exported}
    return {**exported, "NO_PROXY": "127.0.0.1,localhost"}


def run_cell(stage: Stage, cell: Cell) -> Outcome:
    """One cell of a client that is a program of its own."""
    home = stage.home()
    environ = environment(stage, cell.setup, home, f"combo/{cell.id}")
    started = time.monotonic()
    text, failed = _RUNS[cell.setup.client](cell, home, environ)
    return Outcome(text, failed, time.monotonic() - started)


def _codex(cell: Cell, home: Path, environ: dict[str, str]) -> tuple[str, str]:
    (home / ".codex" / "auth.json").write_text(json.dumps(login(chatgpt=cell.setup.login == "chatgpt")))
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    if cell.scenario.name == "compact":
        words += ["-c", "model_context_window=200000", "-c", "model_auto_compact_token_limit=100000"]
    ran = run_client([CLIENTS / "codex", *words, "run it"], home, {**environ, "RUST_LOG": "off"})
    return ran.out, ran.tail if ran.status else ""


def login(*, chatgpt: bool) -> dict[str, Any]:
    """What `codex login` leaves behind."""
    if not chatgpt:
        return {"auth_mode": "apikey", "OPENAI_API_KEY": LOGIN_KEY}
    now = int(time.time())
    auth = {"chatgpt_account_id": ACCOUNT, "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1"}
    claims = {"email": "user@example.com", "iat": now, "exp": now + 1_000_000, "iss": "https://auth.openai.com"}
    token = _unsigned({**claims, "sub": "user-1", "https://api.openai.com/auth": auth})
    tokens = {"id_token": token, "access_token": token, "refresh_token": "refresh", "account_id": ACCOUNT}
    refreshed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": refreshed}


def _unsigned(claims: dict[str, Any]) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none", "typ": "JWT"}, claims, {}))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def _claude(cell: Cell, home: Path, environ: dict[str, str]) -> tuple[str, str]:
    own = {} if cell.setup.entrance != FORWARD else {"ANTHROPIC_API_KEY": LOGIN_KEY}
    kept = {"CLAUDE_CODE_MAX_RETRIES": "3", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
    prompts = ["run it"]
    if cell.scenario.name == "compact":
        prompts += ["/compact", "go on"]
    text = failed = ""
    for number, prompt in enumerate(prompts):
        words = ["-p", prompt, "--allowedTools", "Bash", "--output-format", "json"] + ["--continue"] * (number > 0)
        ran = run_client([CLIENTS / "claude", *words], home, {**environ, **own, **kept})
        said = _json(ran.out)
        text = str(said.get("result"))
        failed = failed or (ran.tail if ran.status or said.get("is_error") else "")
    return text, failed


def _json(text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except ValueError:
        return {}


def _opencode(cell: Cell, home: Path, environ: dict[str, str]) -> tuple[str, str]:
    own = {"OPENAI_API_KEY": LOGIN_KEY} if cell.setup.entrance == FORWARD else {}
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "NO_COLOR": "1"}
    ran = run_client([CLIENTS / "opencode", "run", "run it"], home, {**environ, **own, **quiet})
    return f"{ran.out}\n{ran.err}", ran.tail if ran.status else ""


def _aider(cell: Cell, home: Path, environ: dict[str, str]) -> tuple[str, str]:
    own = {"OPENAI_API_KEY": LOGIN_KEY} if cell.setup.entrance == FORWARD else {}
    quiet = {"AIDER_ANALYTICS": "false", "AIDER_SHOW_RELEASE_NOTES": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    words = ["--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings", "--edit-format", "whole"]
    ran = run_client([AIDER / "aider", *words, "--message", "edit it", EDITED], home, {**environ, **own, **quiet})
    edited = home / "work" / EDITED
    text = edited.read_text() if edited.exists() else ""
    return text, ran.tail if ran.status or not text else ""


_RUNS = {"codex": _codex, "claude": _claude, "opencode": _opencode, "aider": _aider}


def run_program(stage: Stage, setup: Setup, asked: Sequence[Cell]) -> list[Outcome]:
    """The cells of a library, in one run of its program. Every second turn is streamed where it does not matter."""
    home = stage.home()
    environ = environment(stage, setup, home, "combo/main")
    if setup.entrance == FORWARD:
        environ |= dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), LOGIN_KEY)
    lines = [json.dumps({"model": f"combo/{cell.id}", "stream": is_streamed(cell)}) for cell in asked]
    environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    ran = run_client(_command(setup, home), home, environ, "\n".join(lines), LIMIT_S + _TURN_S * len(asked))
    told = [json.loads(line) for line in re.findall(r"^\{.*\}$", ran.out, re.MULTILINE)]
    if len(told) != len(asked):
        return [Outcome("", f"the program ended: {ran.tail}", 0) for _ in asked]
    return [Outcome(str(each["text"]), each["failed"], each["seconds"]) for each in told]


def is_streamed(cell: Cell) -> bool:
    """A turn over a hop and one over a wait are asked for as a whole; a stream that breaks has to be one."""
    return cell.scenario.name not in ("hop", "limit")


def _command(setup: Setup, home: Path) -> list[object]:
    name, *arguments = setup.program
    if name.endswith(".mjs"):
        (home / "work" / "node_modules").symlink_to(MODULES)
        for each in (name, "turns.mjs"):
            shutil.copy(HERE / "programs" / each, home / "work")
        return ["node", home / "work" / name, *arguments]
    python = AIDER / "python" if setup.client == "litellm" else BIN / "python"
    return [python, HERE / "programs" / name, *arguments]


def versions() -> Mapping[str, str]:
    """The versions of the clients that are installed, by client."""
    pythons = {"aider.lock": AIDER, "requirements.lock": BIN}
    found = {
        client: _npm_version(package) if lock == "npm.lock" else _pip_version(pythons[lock], package)
        for client, (lock, package) in PACKAGES.items()
    }
    return {client: version for client, version in found.items() if version}


def _npm_version(package: str) -> str:
    about = MODULES / package / "package.json"
    return str(json.loads(about.read_text())["version"]) if about.exists() else ""


def _pip_version(folder: Path, package: str) -> str:
    if not (folder / "python").exists():
        return ""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([folder / "python", "-c", code], capture_output=True, text=True, check=False).stdout.strip()
