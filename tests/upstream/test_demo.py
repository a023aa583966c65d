"""The demonstration's configuration is valid, and its providers do what they are there for."""

import aiohttp

from combos.core.config import config_warnings, parse_config, save_problems
from combos.upstream.demo import SimulatedProviders, demo_document


def test_the_configuration_is_valid_and_without_warnings() -> None:
    config = parse_config(demo_document(1))
    assert not save_problems(config)
    assert not config_warnings(config)
    assert [target.provider for target in config.combos["demo"].targets] == ["sim-down", "sim-up"]


async def test_one_fails_and_one_answers_whole_and_streaming() -> None:
    providers = SimulatedProviders()
    port = await providers.start()
    assert await providers.start() == port
    base = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{base}/sim-down/v1/chat/completions", json={}) as down:
            assert (down.status, down.headers["retry-after"]) == (503, "3")
        async with session.post(f"{base}/sim-up/v1/chat/completions", json={}) as whole:
            text = (await whole.json())["choices"][0]["message"]["content"]
        async with session.post(f"{base}/sim-up/v1/chat/completions", json={"stream": True}) as stream:
            body = await stream.text()
    assert text.startswith("This answer")
    assert body.count("data: ") == 13
    assert body.endswith("data: [DONE]\n\n")
    await providers.close()


async def test_every_target_has_the_details_of_its_model() -> None:
    providers = SimulatedProviders()
    port = await providers.start()
    config = parse_config(demo_document(port))
    async with aiohttp.ClientSession() as session:
        for target in config.combos["demo"].targets:
            async with session.get(f"{config.providers[target.provider].base_url}/models/{target.model}") as details:
                assert (details.status, (await details.json())["id"]) == (200, target.model)
    await providers.close()


async def test_a_reader_that_leaves_does_no_harm() -> None:
    providers = SimulatedProviders()
    port = await providers.start()
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/sim-up/v1/chat/completions"
        async with session.post(url, json={"stream": True}) as stream:
            await stream.content.readline()
    await providers.close()
