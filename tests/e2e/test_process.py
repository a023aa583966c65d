"""mitmdump as users start it: with and without a configuration, and what it answers."""

from pathlib import Path

from e2e.proxyprocess import mitmdump, process_with
from rawclient import ask
from rawserver import event_stream
from stage import Case
from wires import WIRES, C, M, R, error

DOWN = error(503, {"error": {"message": "down"}})


async def test_the_demonstration_hops_without_a_file(tmp_path: Path, confdir: Path) -> None:
    async with mitmdump(tmp_path, confdir) as proxy:
        for wire in WIRES:
            case = Case(wire)
            case.id = "demo"
            streamed = await proxy.ask(case)
            whole = await proxy.ask(case, stream=False)
            assert (streamed.status, whole.status) == (200, 200)
            assert streamed.header("content-type") == "text/event-stream"
        assert "built-in demonstration" in proxy.log
        await proxy.line(r"demo: sim-down\S* 503 → sim-up\S* 200 \(1 hop")


async def test_hops_stops_and_refusals_in_one_process(tmp_path: Path, confdir: Path) -> None:
    hops = [Case(wire, alpha=DOWN, beta=wire.answers("beta-ok")) for wire in WIRES]
    streams = [
        Case(wire, alpha=event_stream(*wire.start(), wire.busy()), beta=wire.answers("beta-ok")) for wire in WIRES
    ]
    stops = [Case(wire, alpha=error(418, {"error": {"message": "no"}}), beta=DOWN) for wire in WIRES]
    cooled = [Case(wire, alpha=DOWN) for wire in WIRES]
    all_cases = [*hops, *streams, *stops, *cooled]
    async with process_with(tmp_path, confdir, all_cases) as (proxy, _):
        for case, answer in zip([*hops, *streams], await proxy.ask_all([*hops, *streams]), strict=True):
            assert case.calls == ["alpha", "beta"]
            assert (answer.status, answer.body) == (200, b"".join(case.wire.ok("beta-ok")))
        for case, answer in zip(stops, await proxy.ask_all(stops), strict=True):
            assert case.calls == ["alpha"]
            assert (answer.status, answer.json()) == (418, {"error": {"message": "no"}})
        assert [answer.status for answer in await proxy.ask_all(cooled)] == [503] * 3
        for answer in await proxy.ask_all(cooled):
            assert answer.status == 503
            assert answer.header("retry-after") in ("59", "60")
            assert b"combo_unavailable" in answer.body
        assert [case.calls for case in cooled] == [["alpha"]] * 3
        # The log has one line for each, which names the way it took.
        for case in hops:
            await proxy.line(f"{case.id}: {case.id}-alpha/m1 503 → {case.id}-beta/m2 200 \\(1 hop")


async def test_the_proxys_own_address(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok", stream=False))
    async with process_with(tmp_path, confdir, [case]) as (proxy, _):
        page = await ask(proxy.port, "GET", "/")
        assert (page.status, page.header("content-type")) == (200, "text/html; charset=utf-8")
        assert b"Combos" in page.body
        empty = await ask(proxy.port, "HEAD", "/")
        assert (empty.status, empty.body) == (200, b"")
        for method, path in (("GET", "/nowhere"), ("POST", "/v1/embeddings"), ("GET", "/v1/responses/resp_1")):
            missing = await ask(proxy.port, method, path)
            assert missing.status == 404
            assert missing.json()["error"]["type"] == "invalid_request_error"
        named = await ask(proxy.port, "GET", "/nowhere", host=b"localhost:%d" % proxy.port)
        assert named.status == 404
        for wire in (R, C, M):
            asked = Case(wire)
            asked.id = "no-such"
            refused = await proxy.ask(asked)
            assert refused.status == 404
            fault = refused.json()["error"]
            assert fault["type"] in ("invalid_request_error", "not_found_error")
            assert "no-such" in fault["message"]
            if wire is not M:
                assert fault["code"] == "model_not_found"
            unknown = await proxy.ask(asked, model="no-such-model")
            assert unknown.status == 404
            assert "no-such-model" in unknown.json()["error"]["message"]
        assert (await proxy.ask(case, stream=False)).status == 200


async def test_a_file_named_by_option_and_by_variable(tmp_path: Path, confdir: Path) -> None:
    case = Case(R, alpha=R.answers("alpha-ok"))
    elsewhere = tmp_path / "elsewhere"
    async with process_with(elsewhere, confdir, [case]) as (_, _server):
        named = str(elsewhere / "config.json")
        async with mitmdump(tmp_path / "a", confdir, "--set", f"combos_config={named}") as by_option:
            assert b"alpha-ok" in (await by_option.ask(case)).body
        async with mitmdump(tmp_path / "b", confdir, environ={"COMBOS_CONFIG": named}) as by_variable:
            assert b"alpha-ok" in (await by_variable.ask(case)).body
