"""What an operator does meanwhile: edits of the configuration, good and bad, cleared cooldowns, other options."""

import asyncio
import collections
import contextlib
import copy
import json
import random
from pathlib import Path
from typing import Any, Protocol

_OPTIONS: tuple[dict[str, Any], ...] = (
    {"combos_attempt_flows": "all"},
    {"combos_attempt_flows": "none"},
    {"combos_attempt_flows": "auto"},
    {"combos_body_limit": 100},
    {"combos_body_limit": 65_536},
    {"combos_response_headers": True},
    {"combos_response_headers": False},
    {"stream_large_bodies": "1k"},
    {"stream_large_bodies": None},
    {"store_streamed_bodies": True},
    {"store_streamed_bodies": False},
    {"ssl_insecure": True},
)


class Inside(Protocol):
    """What is needed of the proxy."""

    config: Path

    async def inside(self, do: str, **asked: Any) -> Any:
        """Ask `inside.py`."""


class Unrest:
    """Changes something every now and then, decided by the seed; `counts` says how often what."""

    def __init__(self, proxy: Inside, document: dict[str, Any], seed: int, pause_s: float) -> None:
        self._proxy = proxy
        self._document = document
        self._rng = random.Random(f"{seed}:unrest")
        self._pause_s = pause_s
        self.counts: collections.Counter[str] = collections.Counter()

    async def run(self) -> None:
        """Until cancelled; leaves a good configuration behind."""
        deeds = (
            self._edit,
            self._edit,
            self._break,
            self._break,
            self._clear,
            self._options,
            self._options,
            self._reload,
        )
        try:
            while True:
                await asyncio.sleep(self._pause_s * self._rng.uniform(0.3, 1.7))
                deed = self._rng.choice(deeds)
                self.counts[deed.__name__.strip("_")] += 1
                await deed()
        finally:
            self._write(json.dumps(self._document))

    def _write(self, text: str) -> None:
        """As an editor does: a new file in place of the old one, or, now and then, into it."""
        config = self._proxy.config
        if self._rng.random() < 0.3:
            config.write_text(text)
            return
        draft = config.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(config)

    async def _edit(self) -> None:
        """Another good configuration: shared combos and the pool change, private ones do not."""
        document = copy.deepcopy(self._document)
        rng = self._rng
        for name, combo in document["combos"].items():
            if name.startswith("all") and rng.random() < 0.3:
                rng.shuffle(combo["targets"])
                combo["targets"] = combo["targets"][: rng.randint(2, 4)]
        pool = document["providers"]["pool"]["apiKeyPool"]
        rng.shuffle(pool)
        del pool[rng.randint(2, 4) :]
        for number in range(rng.randint(0, 3)):
            document["combos"][f"more{number}"] = copy.deepcopy(document["combos"]["all0"])
        self._write(json.dumps(document))

    async def _break(self) -> None:
        """A bad configuration, and after a while the good one again."""
        document = copy.deepcopy(self._document)
        match self._rng.randrange(4):
            case 0:
                text = json.dumps(document)[:-20]
            case 1:
                text = ""
            case 2:
                document["combos"]["all0"]["targets"] *= 2
                text = json.dumps(document)
            case _:
                document["combos"]["all1"]["targets"] = []
                text = json.dumps(document)
        self._write(text)
        await asyncio.sleep(self._rng.uniform(0.2, 2))
        self._write(json.dumps(self._document))

    async def _clear(self) -> None:
        for name in self._document["combos"]:
            if name.startswith("all"):
                await self._proxy.inside("clear", combo=name)

    async def _options(self) -> None:
        await self._proxy.inside("set", options=self._rng.choice(_OPTIONS))

    async def _reload(self) -> None:
        with contextlib.suppress(OSError):
            await self._proxy.inside("reload")
