"""Takes over a configuration written for opencodex: keeps what means the same here, changes little, names the rest.

Pure functions over documents. What ends up in the file is judged by the configuration's own rules; an object that
breaks one of them is left out with the reason, so that one odd entry does not cost all others.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from combos.admin.references import Document, using_provider
from combos.admin.store import Edit
from combos.core.config import ComboConfig, Config, ProviderConfig, TargetConfig, parse_config
from combos.core.config_document import key_names
from combos.core.config_problems import path_of
from combos.core.config_types import ConfigModel
from combos.core.destinations import classify_host, split_url
from combos.core.errors import ConfigError, ConfigProblem

_ADDRESS = "where the proxy listens is said to mitmproxy"
# Known here as well, but not to be taken over.
_DROPPED = {"$schema": "it names the schema of another program", "port": _ADDRESS, "hostname": _ADDRESS}
_OBJECTS = ("providers", "combos")
_FIRST_KEY = re.compile(r"^(providers|combos)(?:\.([A-Za-z0-9_$-]+)|\[\"(.*?)\"\])")


@dataclass(slots=True)
class Report:
    """Lines for people: `path` or `path: reason`."""

    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def import_document(document: Document, found: Mapping[str, Any], *, replace: bool = False) -> Edit[Report]:
    """Add what `found` holds to a document. Of two objects of one name ours stays, unless `replace`."""
    report = Report()
    taken = _usable(_known(copy.deepcopy(dict(found)), report), report)
    _add_objects(document, taken, report, replace=replace)
    _add_rest(document, taken, report, replace=replace)
    _drop_broken(document, report)
    return Edit(document, report)


def _known(found: Document, report: Report) -> Document:
    """Without what has no meaning here."""
    known = set(key_names(Config).values())
    taken: Document = {}
    for key, value in found.items():
        if key in _DROPPED:
            report.dropped.append(f"{key}: {_DROPPED[key]}")
        elif key not in known:
            report.dropped.append(f"{path_of((key,))}: has no meaning here")
        else:
            taken[key] = value
    for group, model in (("providers", ProviderConfig), ("combos", ComboConfig)):
        if not isinstance(taken.get(group, {}), dict):
            report.dropped.append(f"{group}: is not an object")
            del taken[group]
        for name, row in taken.get(group, {}).items():
            if isinstance(row, dict):
                _strip(row, model, (group, name), report)
    return taken


def _strip(row: dict[str, Any], model: type[ConfigModel], place: tuple[str | int, ...], report: Report) -> None:
    known = set(key_names(model).values())
    for key in [key for key in row if key not in known]:
        del row[key]
        report.dropped.append(f"{path_of((*place, key))}: has no meaning here")
    targets = row.get("targets") if model is ComboConfig else None
    for index, target in enumerate(targets if isinstance(targets, list) else ()):
        if isinstance(target, dict):
            _strip(target, TargetConfig, (*place, "targets", index), report)


def _usable(taken: Document, report: Report) -> Document:
    """Small changes that keep a provider working."""
    for name, row in taken.get("providers", {}).items():
        if not isinstance(row, dict):
            continue
        place = path_of(("providers", name))
        if _is_loopback(row.get("baseUrl")) and row.get("allowPrivateNetwork") is not True:
            row["allowPrivateNetwork"] = True
            report.changed.append(f"{place}.allowPrivateNetwork: set, because it is on this machine")
        if str(row.get("apiKey", "")).startswith("keychain:"):
            report.changed.append(f"{place}.apiKey: kept, but the keychain entry must be stored again for combos")
        if row.get("authMode") == "oauth":
            report.changed.append(f"{place}: stored logins are not taken over; give it an apiKey")
    return taken


def _add_objects(document: Document, taken: Document, report: Report, *, replace: bool) -> None:
    for group in _OBJECTS:
        ours = document.setdefault(group, {})
        for name, row in taken.get(group, {}).items():
            place = path_of((group, name))
            if name in ours and not replace:
                report.dropped.append(f"{place}: there is one already")
            else:
                ours[name] = row
                report.kept.append(place)
        if not ours:
            del document[group]


def _add_rest(document: Document, taken: Document, report: Report, *, replace: bool) -> None:
    for key, value in taken.items():
        if key in _OBJECTS:
            continue
        if key == "disabledModels" and isinstance(value, list) and isinstance(document.get(key, []), list):
            document[key] = list({str(model): model for model in [*document.get(key, []), *value]}.values())
        elif key in document and not replace:
            report.dropped.append(f"{key}: is set already")
            continue
        else:
            document[key] = value
        report.kept.append(key)


def _drop_broken(document: Document, report: Report) -> None:
    """Leave out what breaks a rule, and what then points nowhere, until the rest is valid."""
    while True:
        try:
            parse_config(document)
        except ConfigError as error:
            if not _drop_named(document, error.problems, report):
                raise
        else:
            return


def _drop_named(document: Document, problems: Iterable[ConfigProblem], report: Report) -> bool:
    dropped = False
    for problem in problems:
        match = _FIRST_KEY.match(problem.path)
        group, name = (
            (match[1], match[2] or match[3]) if match else (problem.path.partition(".")[0].partition("[")[0], "")
        )
        if match and name in document.get(group, {}):
            _drop_object(document, group, name, problem, report)
        elif not match and group in document and group not in _OBJECTS:
            del document[group]
            _unkeep(report, group, str(problem))
        else:
            continue
        dropped = True
    return dropped


def _drop_object(document: Document, group: str, name: str, problem: ConfigProblem, report: Report) -> None:
    del document[group][name]
    _unkeep(report, path_of((group, name)), str(problem))
    if group == "providers":
        for combo in _safely_using(document, name):
            _without_target(document, combo, name, report)
    if not document[group]:
        del document[group]


def _safely_using(document: Document, provider: str) -> list[str]:
    try:
        return using_provider(document, provider)
    except (KeyError, TypeError, AttributeError):
        return []  # a combo that is broken itself is dropped for that


def _without_target(document: Document, combo: str, provider: str, report: Report) -> None:
    """A combo loses the targets of a provider that was left out; one without any other is left out too."""
    row = document["combos"][combo]
    rest = [target for target in row["targets"] if target["provider"] != provider]
    place = path_of(("combos", combo))
    if rest == row["targets"]:
        return
    if rest:
        row["targets"] = rest
        report.changed.append(f"{place}.targets: without those of {provider}, which was left out")
    else:
        del document["combos"][combo]
        _unkeep(report, place, f"{place}: all of its targets are of {provider}, which was left out")


def _unkeep(report: Report, place: str, reason: str) -> None:
    report.kept = [kept for kept in report.kept if kept != place]
    report.dropped.append(reason if reason.startswith(place) else f"{place}: {reason}")


def _is_loopback(url: object) -> bool:
    parts = split_url(url) if isinstance(url, str) else ""
    return not isinstance(parts, str) and classify_host(parts.hostname or "")[0] == "loopback"
