"""The reference of failures: the ordered rules, the codes they know, how long a target rests, own errors."""

from collections.abc import Iterator
from typing import Any

from combos.core.cooldown import CEILING_MS, SOURCES
from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Scope
from combos.core.failure_codes import CODE_ROWS, TYPE_AS_CODE, CodeRow
from combos.core.failures import CONTEXT_OVERFLOW, RULES, Rule
from combos.core.request_local import LOCAL_ROWS
from combos.core.retry_after import CEILING_MS as RETRY_AFTER_CEILING_MS
from combos.core.transport import FAULTS
from combos.wire.errors import error_body
from manual.markdown import code, codes, table
from manual.own_errors import OWN_ERRORS, OwnError

HEAD = """# Failures

What happens when a target fails: whether another target is asked, what rests and how long; and what the errors mean
that the proxy makes itself. For the way from a symptom to a remedy see [troubleshooting](troubleshooting.md).

Made by `./scripts/docs` from the tables of the rules themselves; a test fails when this page is behind.

## The rules

The first row that applies decides. Its name is what the log, flows, metrics, records and `ocx explain-flow` show.
*Hop* means: the next eligible target is asked, as long as nothing of an answer has reached the client. *Stop* means:
the client gets the answer as it is, and nothing rests. After the first output there is no hop, whatever the rule.

"""

SCOPES = {
    Scope.NONE: "nothing",
    Scope.TARGET: "the target",
    Scope.PROVIDER: "all targets of the combo with this provider",
}

AFTER_RULES = """
A failure inside a stream is judged by the same rules: its error event stands for the status that its code or type has.
A stream that ends without its proper end is a `transport` failure. The `context-overflow` row hops uncooled in combos
with `contextOverflow: "hop"`.

Statuses, codes and wording are read from the error object of the answer (OpenAI, Anthropic, Google and bare forms, also
wrapped by a relay). Codes and types are compared in lower case with underscores.

## Codes

A code outranks wording. *Alone* says what a code does when the status by itself would stop.

"""

AFTER_CODES = """
Where an error object has no code, its type stands in for one:

"""

LOCAL = """
## Parts of a request that one target cannot take

Rule `request-local`: an intact 400 of at most 16 KiB whose error object fits one of these rows exactly. The next target
is asked, nothing rests.

"""

TRANSPORT = """
## Transport faults

Rule `transport`. The name is what the log and the records show, and the `code` of the answer when no target is left.

"""

COOLDOWNS = """
## How long a target rests

The first source that has a value decides; its name stands beside the cooldown in the log, in `ocx cooldowns` and in the
API. Dates and delays in the text of an error change nothing.

"""

AFTER_COOLDOWNS = """
Cooldowns belong to one combo: the same target in another combo is not cooled. A success ends nothing early;
`ocx cooldowns clear`, the dashboard, saving the combo and a restart do. Keys and accounts of a pool have rests of
their own ([pools](usage.md#credential-pools)). Why else a target is passed over:
[selection](selection.md#why-a-target-is-out).

"""

OWN = """## Errors of the proxy itself

They have the shape of the client's dialect and hold no answer of a model. When targets were asked and all failed, the
client gets the last target's own answer instead; only a transport fault is told in the proxy's words.

"""

SHAPES = """
### The same error in each dialect

Status and message are the same; where the error's name stands differs. Messages and Gemini have no place for a code, so
it follows the message in brackets.

"""


def page() -> str:
    """The whole page."""
    return "".join(
        (HEAD, _rules(), AFTER_RULES, *_codes(), LOCAL, _local(), TRANSPORT, _faults(), *_cooldowns(), *_own())
    )


def _rules() -> str:
    rows = ((code(rule.name), rule.sentence, _then(rule), SCOPES[rule.scope] if rule.hop else "") for rule in RULES)
    return table(("Rule", "When", "Then", "Rests"), rows)


def _then(rule: Rule) -> str:
    if rule.name == CONTEXT_OVERFLOW:
        return "stop, or hop by choice"
    return "hop" if rule.hop else "stop"


def _codes() -> Iterator[str]:
    yield table(("Class", "Codes", "Alone"), ((row.kind.value, codes(row.codes), _alone(row)) for row in CODE_ROWS))
    yield AFTER_CODES
    yield table(("Type", "Counts as"), ((code(kind), code(stands)) for kind, stands in TYPE_AS_CODE))


def _alone(row: CodeRow) -> str:
    return "stop" if row.hop_scope is None else f"hop, rests: {SCOPES[row.hop_scope]}"


def _local() -> str:
    rows = ((code(row.name), row.matches.__doc__ or "", codes(sorted(row.codes - {""}))) for row in LOCAL_ROWS)
    return table(("Row", "The error", "Codes, if any"), rows)


def _faults() -> str:
    rows = ((code(row.fault.value), str(row.status), row.sentence) for row in FAULTS)
    return table(("Fault", "Status", "What the client reads"), rows)


def _cooldowns() -> Iterator[str]:
    yield COOLDOWNS
    rows = ((code(name), source.__doc__ or "", _longest(ceiling)) for name, source, ceiling in SOURCES)
    yield table(("Source", "Value", "At most"), rows)
    yield AFTER_COOLDOWNS


def _longest(ceiling: int | None) -> str:
    if ceiling is None:
        return f"{RETRY_AFTER_CEILING_MS // 3_600_000} h"
    assert ceiling == CEILING_MS
    return f"{ceiling // 60_000} min"


def _own() -> Iterator[str]:
    yield OWN
    yield table(("Status", "`code`", "Message", "When", "Remedy"), (_own_row(row) for row in OWN_ERRORS))
    yield SHAPES
    yield table(
        ("Status", "Responses, Chat: `error.type`", "Messages: `error.type`", "Gemini: `error.status`"), _shapes()
    )


def _own_row(row: OwnError) -> tuple[str, ...]:
    retry = ", with `Retry-After`" if row.error.retry_after_s is not None else ""
    return f"{row.error.status}{retry}", code(row.error.code), code(row.error.message), row.when, row.remedy


def _shapes() -> list[tuple[str, ...]]:
    found: dict[tuple[int, str], tuple[str, ...]] = {}
    for row in sorted(OWN_ERRORS, key=lambda row: row.error.status):
        error = row.error
        found[error.status, error.type] = (
            str(error.status),
            code(error.type),
            code(_body(error, Dialect.MESSAGES)["type"]),
            code(_body(error, Dialect.GEMINI)["status"]),
        )
    return list(found.values())


def _body(error: ProxyError, dialect: Dialect) -> Any:
    return error_body(error, dialect)["error"]
