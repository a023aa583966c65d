"""The Anthropic shape of the model list, and the names under which Claude Code accepts models of other vendors.

Claude Code lists only ids that begin with `claude` or `anthropic`; it gets `claude-ocx-<provider>--<model>`, and
`claude-ocx-combo--<id>` for combos: always the id, never the alias.
"""

from collections.abc import Sequence

from combos.core.catalog import CatalogRow
from combos.core.catalog_member import IMAGE

type Json = dict[str, object]

_PREFIX = "claude-ocx-"
_SEPARATOR = "--"
_RUNGS = ("low", "medium", "high", "xhigh", "max")
# The API's own way to say that a date is not known.
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"


def claude_id(row: CatalogRow) -> str | None:
    """The name of a row for Claude Code; None when it could not be read back."""
    encoded = f"{_PREFIX}{row.namespace}{_SEPARATOR}{row.name}"
    return encoded if decode_claude_id(encoded) == f"{row.namespace}/{row.name}" else None


def decode_claude_id(model: str) -> str | None:
    """`claude-ocx-<provider>--<model>` as `<provider>/<model>`; None for any other name."""
    if not model.startswith(_PREFIX):
        return None
    namespace, separator, name = model.removeprefix(_PREFIX).partition(_SEPARATOR)
    return f"{namespace}/{name}" if namespace and separator and name else None


def anthropic_document(rows: Sequence[CatalogRow], *, encoded: bool) -> Json:
    """The whole answer for these rows; all on one page. `encoded`: with the names that Claude Code accepts."""
    data = anthropic_rows(rows, encoded=encoded)
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"data": data, "has_more": False, "first_id": first, "last_id": last}


def anthropic_rows(rows: Sequence[CatalogRow], *, encoded: bool) -> list[Json]:
    """One row for each model that has a name in this form."""
    named = [(claude_id(row) if encoded else row.id, row) for row in rows]
    return [anthropic_row(row, name) for name, row in named if name is not None]


def anthropic_row(row: CatalogRow, name: str) -> Json:
    """One row, called `name`."""
    usual = f"{row.name} (combo)" if row.is_combo else row.id
    return {
        "id": name,
        "display_name": row.label or usual,
        "type": "model",
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "capabilities": _capabilities(row),
        "max_input_tokens": row.can.max_input,
        "max_tokens": row.can.max_output,
    }


def _capabilities(row: CatalogRow) -> Json:
    ladder = row.can.ladder
    thinks = bool(ladder)
    efforts: Json = {rung: _support(supported=rung in ladder) for rung in _RUNGS}
    kinds: Json = {kind: _support(supported=thinks) for kind in ("adaptive", "enabled")}
    return {
        "effort": {"supported": any(rung in ladder for rung in _RUNGS), **efforts},
        "image_input": _support(supported=IMAGE in row.can.modalities),
        "thinking": {"supported": thinks, "types": {**kinds, "disabled": _support(supported=True)}},
    }


def _support(*, supported: bool) -> Json:
    return {"supported": supported}
