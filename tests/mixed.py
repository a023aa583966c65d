"""Combos over targets of several wire formats, and conversations to have with them."""

import json
from typing import Any

from playbook import World, config, provider
from translations import CORPUS

WIRES = {"R": "responses", "C": "chat", "M": "messages", "G": "gemini"}
PAIRS = [(client, other) for client in WIRES for other in WIRES if client != other]


def mixed(client: str, *wires: str, **combo: Any) -> World:
    """A combo whose targets speak these wires in order, for a client that speaks `client`."""
    rows = dict(zip(("alpha", "beta", "gamma", "delta"), wires, strict=False))
    keys = [f"{name}/m{n}" for n, name in enumerate(rows, 1)]
    providers = {name: provider(name, wire) for name, wire in rows.items()}
    return World(config(*keys, providers=providers, **combo), wire=client)


def conversation(wire: str, case: str = "tools") -> dict[str, Any]:
    """A request of the corpus for the combo."""
    document: dict[str, Any] = json.loads((CORPUS / "requests" / f"{WIRES[wire]}.{case}.json").read_text())
    return document if wire == "G" else {**document, "model": "combo/main", "stream": True}
