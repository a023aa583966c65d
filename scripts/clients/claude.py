"""Checks with the real Claude Code that the matrix does not make: aliases, listed names, the billing line."""

import json
import sys
import urllib.request
from typing import Any

from answers import OK, TOOL_RESULT
from checks import CLIENTS, Ran, Stage, expect, run_checks, run_client

from upstream import Step

_DOWN: Step = (503, {})


def prepare(stage: Stage) -> None:
    """The combos, one for each check."""
    stage.combo("aliased", [_DOWN], ["tool", "answer"], alias="team/aliased")
    stage.combo("listed", ["answer"])
    stage.combo("proxied", [_DOWN], ["tool", "answer"])


def ask_claude(stage: Stage, model: str, *, base: bool = True) -> Ran:
    """One turn, as base URL or as forward proxy."""
    home = stage.home()
    environ = {
        **stage.environ(home, "NODE_EXTRA_CA_CERTS"),
        "ANTHROPIC_API_KEY": "sk-ant-client",
        "CLAUDE_CODE_MAX_RETRIES": "3",
        "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    if base:
        environ["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{stage.port}"
    words = ["-p", "run it", "--model", model, "--allowedTools", "Bash", "--output-format", "json"]
    return run_client([CLIENTS / "claude", *words], home, environ)


def expect_answer(ran: Ran) -> None:
    """The final answer came, and no error."""
    try:
        result = json.loads(ran.out)
    except ValueError:
        result = {}
    expect(ran.status == 0 and OK in str(result.get("result")) and not result.get("is_error"), f"answered: {ran.tail}")


def expect_tool_turn(stage: Stage, combo_id: str, ran: Ran) -> None:
    """The first provider failed, the second one was asked twice, and got the result of the tool that really ran."""
    expect_answer(ran)
    expect(stage.calls(combo_id) == "abb", f"providers asked: {stage.calls(combo_id)}")
    expect(TOOL_RESULT in json.dumps(stage.bodies(combo_id)[-1]), "the tool's result did not come back")


# -- checks


def tool_turn_over_a_hop_by_alias(stage: Stage) -> None:
    expect_tool_turn(stage, "aliased", ask_claude(stage, "team/aliased"))


def listed_name_can_be_used(stage: Stage) -> None:
    """Claude Code lists only names that begin with `claude`: the one that it is given leads to the combo."""
    headers = {"user-agent": "claude-code/2.1.197", "anthropic-version": "2023-06-01", "x-api-key": "any"}
    request = urllib.request.Request(f"http://127.0.0.1:{stage.port}/v1/models?limit=1000", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        rows: list[dict[str, Any]] = json.load(answer)["data"]
    names = [row["id"] for row in rows if row["id"].endswith("--listed")]
    expect(len(names) == 1 and names[0].startswith("claude"), f"listed as {names}")
    expect_answer(ask_claude(stage, names[0]))
    expect(stage.calls("listed").startswith("a"), "the combo was not asked")


def forward_proxy(stage: Stage) -> None:
    expect_tool_turn(stage, "proxied", ask_claude(stage, "combo/proxied", base=False))
    seen = stage.upstream.of("proxied-a", "proxied-b")
    expect(not any("sk-ant-client" in str(request.headers) for request in seen), "the client's key went to a provider")
    billed = [request for request in seen if "x-anthropic-billing-header" in json.dumps(request.body.get("system"))]
    expect(not billed, "the vendor's billing line went to another provider")


CHECKS = (
    tool_turn_over_a_hop_by_alias,
    listed_name_can_be_used,
    forward_proxy,
)

if __name__ == "__main__":
    sys.exit(run_checks("claude", "messages", prepare, CHECKS))
