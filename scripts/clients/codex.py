"""Checks with the real Codex CLI that the matrix does not make: lists, aliases, WebSocket and the user's own login."""

import json
import subprocess
import sys
from typing import Any

from answers import OK, TOOL_RESULT
from checks import BIN, CLIENTS, Ran, Stage, expect, run_checks, run_client
from drive import login
from world import NATIVE

from upstream import Step

_DOWN: Step = (503, {})


def prepare(stage: Stage) -> None:
    """The combos, one for each check."""
    stage.combo("main", ["answer"], alias="daily-fast")
    stage.combo("aliased", [_DOWN], ["tool", "answer"], alias="team/aliased")
    stage.combo("listed", ["answer"])
    stage.combo("proxied", [_DOWN], ["tool", "answer"])
    stage.combo("chatgpt", [_DOWN], ["tool", "answer"])
    stage.combo("refused", [(401, {})])


def exec_codex(
    stage: Stage, model: str, *, base: bool = True, chatgpt: bool = False, command: str = "exec", top: str = ""
) -> Ran:
    """One turn: as base URL, or as forward proxy with an API key or a ChatGPT login."""
    home = stage.home()
    folder = home / ".codex"
    folder.mkdir()
    own = f'model_provider = "combos"\n{top}[model_providers.combos]\nname = "Combos"\nwire_api = "responses"\n'
    own += f'base_url = "http://127.0.0.1:{stage.port}/v1"\nenv_key = "OPENAI_API_KEY"\n'
    (folder / "config.toml").write_text(own if base else top)
    (folder / "auth.json").write_text(json.dumps(login(chatgpt=chatgpt)))
    environ = {**stage.environ(home, "CODEX_CA_CERTIFICATE"), "OPENAI_API_KEY": "sk-client", "RUST_LOG": "off"}
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", model, "run it"]
    return run_client([CLIENTS / "codex", *(words if command == "exec" else command.split())], home, environ)


def expect_tool_turn(stage: Stage, combo_id: str, ran: Ran) -> None:
    """The first provider failed, the second one was asked twice, and got the result of the tool that really ran."""
    expect(ran.status == 0 and OK in ran.out, f"no final answer: {ran.tail}")
    expect(stage.calls(combo_id) == "abb", f"providers asked: {stage.calls(combo_id)}")
    expect(TOOL_RESULT in json.dumps(stage.bodies(combo_id)[-1]), "the tool's result did not come back")


def upgrades(stage: Stage, since: int) -> list[dict[str, Any]]:
    """The WebSocket attempts from a place of the log on."""
    return [row for row in stage.world()[since:] if {"upgrade", "Upgrade"} & set(row.get("headers", ()))]


# -- checks


def tool_turn_over_a_hop_by_alias(stage: Stage) -> None:
    expect_tool_turn(stage, "aliased", exec_codex(stage, "team/aliased"))


def written_catalog_is_taken(stage: Stage) -> None:
    """The catalog that `ocx` writes is listed as it is, and its combos are no unknown models."""
    catalog = stage.folder / "catalog.json"
    command = [str(BIN / "ocx"), "catalog", "--codex", "--config", str(stage.config)]
    catalog.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    top = f"model_catalog_json = {json.dumps(str(catalog))}\n"
    unknown = exec_codex(stage, "combo/listed")
    expect("Model metadata for" in unknown.err, "without a catalog Codex no longer warns: this check proves nothing")
    known = exec_codex(stage, "combo/listed", top=top)
    expect(known.status == 0 and OK in known.out, f"no final answer: {known.tail}")
    expect("Model metadata for" not in known.err, f"a combo of the catalog is unknown: {known.tail}")
    slugs = listed(exec_codex(stage, "", top=top, command="debug models"))
    expect({"daily-fast", "team/aliased", "combo/listed"} <= slugs, f"listed: {sorted(slugs)}")


def combos_are_listed_beside_native_models(stage: Stage) -> None:
    ran = exec_codex(stage, "", base=False, chatgpt=True, command="debug models")
    slugs = listed(ran)
    expect({NATIVE, "daily-fast", "combo/listed"} <= slugs, f"listed: {sorted(slugs)} {ran.tail[-200:]}")


def listed(ran: Ran) -> set[str]:
    """The models of `codex debug models`."""
    expect(ran.status == 0, f"no list: {ran.tail}")
    return {row["slug"] for row in json.loads(ran.out)["models"]}


def forward_proxy_with_an_api_key(stage: Stage) -> None:
    """The WebSocket that Codex tries first is refused once; the turn goes over HTTP."""
    since = len(stage.world())
    expect_tool_turn(stage, "proxied", exec_codex(stage, "combo/proxied", base=False))
    expect(len(upgrades(stage, since)) == 1, f"WebSocket attempts: {len(upgrades(stage, since))}")
    refused = [row for row in stage.world()[since:] if row.get("status") == 426]
    expect(len(refused) == 1, f"answers 426: {len(refused)}")


def forward_proxy_with_a_chatgpt_login(stage: Stage) -> None:
    since = len(stage.world())
    expect_tool_turn(stage, "chatgpt", exec_codex(stage, "combo/chatgpt", base=False, chatgpt=True))
    posts = [row for row in stage.world()[since:] if row.get("path") == "/backend-api/codex/responses"]
    codings = {row["headers"].get("content-encoding") for row in posts if row.get("method") == "POST"}
    expect(codings == {"zstd"}, f"content codings: {codings}")
    expect(len(upgrades(stage, since)) == 1, f"WebSocket attempts: {len(upgrades(stage, since))}")
    leaked = [
        request for request in stage.upstream.of("chatgpt-a", "chatgpt-b") if "chatgpt-account-id" in request.headers
    ]
    expect(not leaked, "the client's login was sent to a provider")


def foreign_401_leaves_the_login_alone(stage: Stage) -> None:
    """A provider's rejected key must not make Codex renew the user's own login. Asked without a combo: none cools."""
    since = len(stage.world())
    ran = exec_codex(stage, "refused-a/m1", base=False, chatgpt=True)
    expect(ran.status != 0 and "scripted 401" in f"{ran.out}{ran.err}", f"the refusal is not shown: {ran.tail}")
    renewals = [row for row in stage.world()[since:] if row.get("host") == "auth.openai.com" and "token" in row["path"]]
    expect(not renewals, f"the login was renewed {len(renewals)} times")


CHECKS = (
    tool_turn_over_a_hop_by_alias,
    written_catalog_is_taken,
    combos_are_listed_beside_native_models,
    forward_proxy_with_an_api_key,
    forward_proxy_with_a_chatgpt_login,
    foreign_401_leaves_the_login_alone,
)

if __name__ == "__main__":
    sys.exit(run_checks("codex", "responses", prepare, CHECKS))
