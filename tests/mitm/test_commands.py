"""The `combos.…` commands on a running proxy."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.exceptions import CommandError
from mitmproxy.test import tflow

from combos.mitm.commands import Commands
from stage import Case, Stage, stage
from wires import R, error

DOWN = error(503, {"error": {"message": "down"}})


class Host:
    service = None

    def reload(self) -> Any:
        raise AssertionError


def call(on: Stage, name: str, *arguments: str) -> Any:
    """As typed at mitmproxy's prompt."""
    return on.proxy.master.commands.execute(" ".join([name, *arguments]))


def text(lines: Sequence[str]) -> str:
    return "\n".join(lines)


async def test_list_show_and_cooldowns(confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=R.answers("beta-ok"), combo={"alias": "team/daily"})
    async with stage(confdir, case) as on:
        assert call(on, "combos.cooldowns") == []
        (row,) = call(on, "combos.list")
        assert row.startswith(f"{case.id} (team/daily)  failover  ")
        assert f"{case.id}-alpha/m1" in row
        await on.ask(case)
        (row,) = call(on, "combos.list")
        assert f"next: {case.id}-beta/m2" in row
        for name in (case.id, case.model, "team/daily"):
            shown = text(call(on, "combos.show", name))
            assert f"{case.id}-alpha/m1" in shown
            assert f"{case.id}-beta/m2" in shown
        (line,) = call(on, "combos.cooldowns")
        assert line.split("  ")[:3] == [case.id, f"{case.id}-alpha/m1", "60.0 s"]


async def test_clearing_cooldowns(confdir: Path) -> None:
    case = Case(R, alpha=DOWN, beta=DOWN)
    async with stage(confdir, case) as on:
        await on.ask(case)
        assert len(on.cooling(case)) == 2
        assert call(on, "combos.cooldown.clear", f"{case.id}-alpha/m1") == "1 cooldown cleared"
        assert list(on.cooling(case)) == ["beta/m2"]
        with pytest.raises(CommandError, match=f"unknown target: {case.id}-alpha/m; there are: {case.id}-alpha/m1, "):
            call(on, "combos.cooldown.clear", f"{case.id}-alpha/m")
        assert list(on.cooling(case)) == ["beta/m2"]
        assert call(on, "combos.cooldown.clear") == "1 cooldown cleared"
        assert call(on, "combos.cooldown.clear") == "0 cooldowns cleared"
        assert on.cooling(case) == {}


async def test_reload(confdir: Path) -> None:
    case = Case(R, alpha=DOWN)
    async with stage(confdir, case) as on:
        path = on.service.config.path
        assert call(on, "combos.reload") == f"{path}: unchanged, 1 combo in force"
        document = json.loads(path.read_text())
        document["combos"]["second"] = case.combo()
        path.write_text(json.dumps(document))
        assert call(on, "combos.reload") == f"{path}: loaded, 2 combos in force"
        document["combos"]["second"] = {"targets": []}
        path.write_text(json.dumps(document))
        with pytest.raises(CommandError, match=r"combos\.second\.targets"):
            call(on, "combos.reload")
        assert len(call(on, "combos.list")) == 2


async def test_explain(confdir: Path) -> None:
    case = Case(
        R, alpha=error(429, {"error": {"message": "slow"}}, [(b"Retry-After", b"9")]), beta=R.answers("beta-ok")
    )
    async with stage(confdir, case) as on:
        await on.ask(case)
        ours = [flow for flow in on.flows if "combos" in flow.metadata]
        (client,) = [flow for flow in ours if "combo" in flow.metadata["combos"]]
        commands = on.combos.commands
        told = text(commands.explain([client]))
        assert client.comment in told
        assert "429, rule " in told
        assert "9000 ms" in told
        attempts = [flow for flow in ours if flow is not client]
        judged = commands.explain(attempts)
        assert len(judged) == len(attempts) == 2
        assert f"{case.id}-alpha/m1: status 429, rule " in judged[0]
        assert judged[0].endswith("hop, cooldown 9 s by retry-after")
        assert judged[1].endswith("status 200")
        (other,) = commands.explain([tflow.tflow()])
        assert other.endswith("no combo request")


async def test_an_unknown_combo_is_an_error_that_lists_them(confdir: Path) -> None:
    case = Case(R, alpha=DOWN)
    async with stage(confdir, case) as on:
        with pytest.raises(CommandError, match=f"unknown combo: none; there are: {case.id}"):
            call(on, "combos.show", "none")


def test_before_the_start_there_is_nothing_to_tell() -> None:
    commands = Commands(Host())  # type: ignore[arg-type]
    for command in (commands.list, commands.cooldowns):
        with pytest.raises(CommandError, match="not started yet"):
            command()
