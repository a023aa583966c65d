"""The flags of `ocx combo set` and the change they describe. Values are judged by the configuration's own rules."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from combos.cli.grammar import Whole
from combos.cli.targets import TargetError, parse_target_keys, parse_targets
from combos.core.config_combo import (
    Affinity,
    ContextOverflow,
    CooldownWaitPolicy,
    DefaultEffortMode,
    ImageInput,
    ReasoningEffortMode,
    Strategy,
)
from combos.core.config_text import object_of, repeated_keys
from combos.core.config_types import Effort
from combos.core.limits import (
    COOLDOWN_MAX_MS,
    DECISION_TIMEOUT_MAX_MS,
    DECISION_TIMEOUT_MIN_MS,
    FIRST_OUTPUT_TIMEOUT_MAX_MS,
    HEDGE_MAX_MS,
    STICKY_MAX,
    WAIT_MAX_MS,
)

CLEAR = "-"


def _words(enum: Any, *, clears: bool = False) -> click.Choice[str]:
    return click.Choice([member.value for member in enum] + ([CLEAR] if clears else []))


_EFFORT, _WAIT_POLICY = _words(Effort, clears=True), _words(CooldownWaitPolicy, clears=True)
_ROWS: tuple[tuple[str, str, Any, str, str], ...] = (
    ("--strategy", "strategy", _words(Strategy), "", "How the next target is chosen."),
    ("--sticky", "stickyLimit", Whole(1, STICKY_MAX), "N", "Successes per round-robin selection."),
    ("--effort", "defaultEffort", _EFFORT, "", "Default reasoning effort, - to clear."),
    ("--effort-mode", "defaultEffortMode", _words(DefaultEffortMode), "", "Whether it yields to the caller's."),
    ("--reasoning-effort-mode", "reasoningEffortMode", _words(ReasoningEffortMode), "", "How ladders are combined."),
    ("--image-input", "imageInput", _words(ImageInput), "", "Whether images are accepted."),
    ("--alias", "alias", str, "NAME", "Public model name, - to clear."),
    ("--display-name", "displayName", str, "LABEL", "Label in model lists, - to clear."),
    ("--cooldown", "cooldownMs", Whole(1, COOLDOWN_MAX_MS, clears=True), "MS", "Cooldown of a target, - to clear."),
    ("--wait-for-cooldown", "waitForCooldownMs", Whole(0, WAIT_MAX_MS), "MS", "How long to wait for a target."),
    ("--wait-policy", "cooldownWaitPolicy", _WAIT_POLICY, "", "When last resorts are used, - to clear."),
    ("--decision-provider", "decisionProvider", str, "ID", "Decision service (jev only), - to clear."),
    ("--decision-model", "decisionModel", str, "ROUTE", "Model that decides (jev only), - to clear."),
    (
        "--decision-timeout",
        "decisionTimeoutMs",
        Whole(DECISION_TIMEOUT_MIN_MS, DECISION_TIMEOUT_MAX_MS, clears=True),
        "MS",
        "Deadline of a decision (jev only), - to clear.",
    ),
    ("--context-overflow", "contextOverflow", _words(ContextOverflow), "", "What an overlong request does."),
    ("--affinity", "affinity", _words(Affinity), "", "Whether conversations stay on their target."),
    (
        "--first-output-timeout",
        "firstOutputTimeoutMs",
        Whole(1, FIRST_OUTPUT_TIMEOUT_MAX_MS, clears=True),
        "MS",
        "Hop when no output came in this time, - to clear.",
    ),
    (
        "--hedge-after",
        "hedgeAfterMs",
        Whole(1, HEDGE_MAX_MS, clears=True),
        "MS",
        "Ask a second target after this silence, - to clear.",
    ),
)
_FLAGS = {key: flag for flag, key, *_ in _ROWS} | {"nativeAlias": "--native-alias"}
_JEV = ("decisionProvider", "decisionModel", "decisionTimeoutMs")


def combo_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Every flag of the table, and those about targets and names."""
    for flag, key, kind, metavar, text in reversed(_ROWS):
        command = click.option(flag, key.lower(), type=kind, metavar=metavar or None, help=text)(command)
    for decorate in (
        click.option("--native-alias/--no-native-alias", "nativealias", default=None, help="Alias is a native model."),
        click.option("--last-resort", metavar="TARGET,…", help="Targets for emergencies only, - for none."),
        click.option("--rename-from", metavar="ID", help="The combo to rename."),
        click.option("--targets-file", type=click.Path(exists=True, dir_okay=False), help="Targets as a JSON array."),
        click.option(
            "--targets", metavar="TARGET,…", help="provider/model[:weight],…; left out: keep the stored ones."
        ),
    ):
        command = decorate(command)
    return command


def changes_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Field → value; None for a field that is cleared. Choosing one decision method clears the other."""
    given = {key: flags[key.lower()] for key in _FLAGS if flags.get(key.lower()) is not None}
    changes = {key: None if value == CLEAR else value for key, value in given.items()}
    provider, model = changes.get("decisionProvider"), changes.get("decisionModel")
    if provider is not None and model is not None:
        raise click.UsageError("--decision-model and --decision-provider exclude each other")
    if provider is not None:
        changes["decisionModel"] = None
    if model is not None:
        changes["decisionProvider"] = None
    return changes


def targets_of(flags: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The targets that were given, if any."""
    text, file = flags.get("targets"), flags.get("targets_file")
    if text is not None and file is not None:
        raise click.UsageError("--targets and --targets-file exclude each other")
    if file is not None:
        return _targets_in(Path(file))
    try:
        return None if text is None else parse_targets(text)
    except TargetError as error:
        raise click.UsageError(f"--targets: {error}") from None


def with_last_resort(targets: list[dict[str, Any]], text: str | None) -> list[dict[str, Any]]:
    """The targets, exactly the named ones marked as last resort; unchanged when nothing was said."""
    if text is None:
        return targets
    try:
        named = [] if text == CLEAR else parse_target_keys(text)
    except TargetError as error:
        raise click.UsageError(f"--last-resort: {error}") from None
    keys = [f"{target['provider']}/{target['model']}" for target in targets]
    missing = [key for key in named if key not in keys]
    if missing:
        raise click.UsageError(f"--last-resort: {missing[0]} is not a target; there are {', '.join(keys)}")
    return [{**target, "lastResort": key in named} for target, key in zip(targets, keys, strict=True)]


def check_strategy(changes: Mapping[str, Any], strategy: str) -> None:
    """Flags that mean nothing with the strategy that will be in force."""
    if changes.get("stickyLimit") is not None and strategy != Strategy.ROUND_ROBIN:
        raise click.UsageError("--sticky is only for --strategy round-robin")
    for key in _JEV:
        if changes.get(key) is not None and strategy != Strategy.JEV:
            raise click.UsageError(f"{_FLAGS[key]} is only for --strategy jev")


def flag_of(key: str) -> str:
    """The flag that sets a field."""
    return _FLAGS[key]


def _targets_in(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=object_of)
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(target, dict) for target in found):
        raise click.UsageError(f"--targets-file: {path} is not a JSON array of targets")
    repeated = next(repeated_keys(found), None)
    if repeated is not None:
        raise click.UsageError(f"--targets-file: {path}: {repeated}")
    return found
