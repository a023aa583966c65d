"""Takes over a configuration written for opencodex: keeps what means the same here, changes little, names the rest.

Pure functions over documents. What ends up in the file is judged by the configuration's own rules; an object that
breaks one of them is left out with the reason, so that one odd entry does not cost all others.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from combos.admin.store import Document, Edit
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
_OBJECT = re.compile(r"(providers|combos)(?:\.([A-Za-z0-9_$-]+)|\[\"(.*?)\"\])")
_SETTING = re.compile(r"[.\[]")


@dataclass(slots=True)
class Report:
    """Lines for people: `path` or `path: reason`."""

    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def import_document(document: Document, found: Mapping[str, Any], *, replace: bool = False) -> Edit[Report]:
    """Add what `found` holds to a valid document. Of two objects of one name ours stays, unless `replace`."""
    report, before = Report(), copy.deepcopy(document)
    taken = _usable(_known(copy.deepcopy(dict(found)), report), report)
    _add_objects(document, taken, report, replace=replace)
    _add_rest(document, taken, report, replace=replace)
    while problems := _broken(document):
        if not _drop_named(document, before, problems, report):
            break  # nothing that was imported is at fault: whoever writes the file refuses it
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


def _broken(document: Document) -> tuple[ConfigProblem, ...]:
    try:
        parse_config(document)
    except ConfigError as error:
        return error.problems
    return ()


def _drop_named(document: Document, before: Document, problems: Iterable[ConfigProblem], report: Report) -> bool:
    """Leave out the imported objects and settings that break a rule, and say whether there were any."""
    dropped = False
    for problem in problems:
        group, name = _place_of(problem.path)
        place = path_of((group, name)) if name else group
        if place not in report.kept:
            continue
        _unkeep(report, place, str(problem))
        _restore(document, before, group, name)
        if group == "providers" and name not in before.get(group, {}):
            _without_provider(document, name, report)
        dropped = True
    return dropped


def _place_of(path: str) -> tuple[str, str]:
    """The group and name of the object that a problem lies in; only the setting outside of both groups."""
    match = _OBJECT.match(path)
    if match:
        return match[1], match[2] or match[3]
    return _SETTING.split(path, maxsplit=1)[0], ""


def _restore(document: Document, before: Document, group: str, name: str) -> None:
    """One object, or one setting, as it was before the import."""
    if not name:
        document.pop(group, None)
        if group in before:
            document[group] = before[group]
        return
    document[group].pop(name, None)
    if name in before.get(group, {}):
        document[group][name] = before[group][name]
    if not document[group]:
        del document[group]


def _without_provider(document: Document, provider: str, report: Report) -> None:
    """Imported combos lose the targets of a provider that was left out; one without any other is left out too."""
    for combo, row in list(document.get("combos", {}).items()):
        place = path_of(("combos", combo))
        targets = row.get("targets") if isinstance(row, dict) else None
        if place not in report.kept or not isinstance(targets, list):
            continue
        rest = [target for target in targets if not isinstance(target, dict) or target.get("provider") != provider]
        if not rest:
            _restore(document, {}, "combos", combo)
            _unkeep(report, place, f"{place}: all of its targets are of {provider}, which was left out")
        elif rest != targets:
            row["targets"] = rest
            report.changed.append(f"{place}.targets: without those of {provider}, which was left out")


def _unkeep(report: Report, place: str, reason: str) -> None:
    report.kept = [kept for kept in report.kept if kept != place]
    report.dropped.append(reason if reason.startswith(place) else f"{place}: {reason}")


def _is_loopback(url: object) -> bool:
    parts = split_url(url) if isinstance(url, str) else ""
    return not isinstance(parts, str) and classify_host(parts.hostname or "")[0] == "loopback"
