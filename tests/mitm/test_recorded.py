"""Recorded flows judged by today's rules, from a file as mitmproxy writes it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.flow import Flow
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

import combos
from combos.mitm.recorded import main
from stage import Case, stage
from wires import R, error

SLOW = error(429, {"error": {"message": "slow"}}, [(b"Retry-After", b"9")])


def record(path: Path, flows: Sequence[Flow]) -> Path:
    with path.open("wb") as file:
        for flow in flows:
            FlowWriter(file).add(flow)
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["attempts"]


async def recorded(confdir: Path, case: Case, path: Path, **options: Any) -> tuple[Path, dict[str, Any]]:
    """The file of one request, and the configuration that was in force."""
    async with stage(confdir, case, **options) as on:
        await on.ask(case)
        return record(path, on.flows), json.loads(on.service.config.path.read_text())


async def test_a_hop(confdir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(R, alpha=SLOW, beta=R.answers("ok"))
    file, document = await recorded(confdir, case, tmp_path / "f.mitm")
    config = tmp_path / "now.json"
    config.write_text(json.dumps(document))
    first, second = told(capsys, file, "--config", config)
    assert (first["attempt"], first["target"], first["seen"]) == (1, f"{case.id}-alpha/m1", "status 429")
    assert (first["action"], first["cooldown_ms"], first["cooldown_source"]) == ("hop", 9000, "retry-after")
    assert first["rule"] == first["recorded_rule"]
    assert first["changed"] is False
    assert first["then"] == f"on to {case.id}-beta/m2"
    assert (second["attempt"], second["rule"], second["then"]) == (2, None, "served")
    assert main([str(file), "--config", str(config)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert f"status 429  rule {first['rule']}: hop, cooldown 9 s by retry-after  on to" in lines[0]


async def test_todays_configuration_decides(confdir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(R, alpha=error(500, {}), beta=R.answers("ok"))
    file, document = await recorded(confdir, case, tmp_path / "f.mitm")
    config = tmp_path / "now.json"
    combo = document["combos"][case.id]
    combo["targets"], combo["cooldownMs"] = combo["targets"][:1], 1500
    config.write_text(json.dumps(document))
    first = told(capsys, file, "--config", config)[0]
    assert (first["cooldown_ms"], first["cooldown_source"]) == (1500, "configured")
    assert first["then"] == "no target is left"
    del document["combos"]
    config.write_text(json.dumps(document))
    assert told(capsys, file, "--config", config)[0]["then"] == f"combo {case.id} is not configured any more"


async def test_a_rule_that_has_changed_is_named(
    confdir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(R, alpha=error(500, {}), beta=R.answers("ok"))
    async with stage(confdir, case) as on:
        await on.ask(case)
        (client,) = [flow for flow in on.flows if "combo" in flow.metadata.get("combos", {})]
        client.metadata["combos"]["attempts"][0]["rule"] = "an-older-rule"
        file = record(tmp_path / "f.mitm", on.flows)
    first = told(capsys, file, "--config", tmp_path / "none.json")[0]
    assert (first["changed"], first["recorded_rule"]) == (True, "an-older-rule")
    assert main([str(file), "--config", str(tmp_path / "none.json")]) == 0
    assert "(then: an-older-rule)" in capsys.readouterr().out


async def test_attempts_without_flows(confdir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case(R, alpha=SLOW, beta=error(400, {"error": {"message": "bad", "type": "invalid_request_error"}}))
    file, _ = await recorded(confdir, case, tmp_path / "f.mitm", combos_options={"combos_attempt_flows": "none"})
    first, second = told(capsys, file, "--config", tmp_path / "none.json")
    assert (first["seen"], first["rule"], first["then"]) == ("429", None, "its answer was not kept")
    assert (second["attempt"], second["action"], second["then"]) == (2, "stop", "the client gets this answer")


def test_traffic_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, other, tcp = tflow.tflow(resp=True), tflow.tflow(resp=True), tflow.ttcpflow()
    model.request.method, model.request.path = "POST", "/v1/responses"
    assert model.response is not None
    model.response.status_code = 503
    (row,) = told(capsys, record(tmp_path / "f.mitm", [model, other, tcp]), "--config", tmp_path / "none.json")
    assert (row["combo"], row["attempt"], row["action"]) == (None, None, "hop")
    assert row["then"] == "no combo request; in a combo: the next target is asked"
    assert main([str(record(tmp_path / "g.mitm", [other])), "--config", str(tmp_path / "none.json")]) == 0
    assert capsys.readouterr().out == "No request for a model in this file.\n"


def test_files_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, config = tmp_path / "broken.mitm", tmp_path / "config.json"
    broken.write_bytes(b"no flows here")
    assert main([str(broken), "--config", str(config)]) == 1
    assert "broken.mitm" in capsys.readouterr().err
    assert main([str(tmp_path / "missing"), "--config", str(config)]) == 1
    assert "missing" in capsys.readouterr().err
    config.write_text('{"providers": 5}')
    assert main([str(record(tmp_path / "f.mitm", [])), "--config", str(config)]) == 1
    assert "providers: must be an object" in capsys.readouterr().err


def test_a_file_that_ends_in_half_a_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = tflow.tflow(resp=True)
    flow.request.method, flow.request.path = "POST", "/v1/responses"
    file = record(tmp_path / "cut.mitm", [flow, flow])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])
    assert main([str(file), "--config", str(tmp_path / "none.json"), "--json"]) == 1
    said = capsys.readouterr()
    assert [row["flow"] for row in json.loads(said.out)["attempts"]] == [flow.id]
    assert "cut.mitm" in said.err
    assert "What stood before that is shown." in said.err


def test_a_length_beyond_all_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "long.mitm"
    file.write_bytes(b"999999999999:x")
    assert main([str(file), "--config", str(tmp_path / "none.json")]) == 1
    assert "long.mitm: Invalid data format." in capsys.readouterr().err


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    flow = tflow.tflow(resp=True)
    flow.request.method, flow.request.path = "POST", "/v1/responses"
    file = record(tmp_path / "f.mitm", [flow] * 3)
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [sys.executable, "-m", "combos.mitm.recorded", str(file), "--config", str(tmp_path / "none.json")]
    environ = {**os.environ, "PYTHONPATH": str(Path(combos.__file__).parents[1])}
    done = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, env=environ, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


ODD_NOTES = [
    None, 7, "x", [], ["attempts"], {"attempts": None}, {"attempts": [None, 3, {}]}, {"attempts": {"a": 1}, "combo": 9},
    {"client_flow": None}, {"client_flow": "x", "attempt": None}, {"client_flow": "x", "attempt": -1, "target": 4},
    {"attempts": [{"rule": 3, "target": [], "status": {}}, {"rule": None}], "combo": ["main"]},
]  # fmt: skip


@pytest.mark.parametrize("noted", ODD_NOTES, ids=str)
def test_notes_that_combos_never_wrote_are_no_attempts_or_unknown(
    noted: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = tflow.tflow(resp=True)
    flow.request.path = "/v1/responses"
    flow.request.method = "POST"
    flow.metadata["combos"] = noted
    path = record(tmp_path / "flows", [flow])
    assert main([str(path), "--config", str(tmp_path / "none.json")]) == 0
    assert "Traceback" not in "".join(capsys.readouterr())


def test_a_flow_without_one_of_its_parts_ends_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path / "flows", [tflow.tflow(resp=True)])
    for part in (b"request", b"response", b"server_conn", b"timestamp_end", b"headers"):
        broken = tmp_path / "broken"
        broken.write_bytes(path.read_bytes().replace(part, part[::-1]))
        assert main([str(broken), "--config", str(tmp_path / "none.json")]) == 1
        assert "Invalid data format." in capsys.readouterr().err
