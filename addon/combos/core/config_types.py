"""Strict value types of the configuration and the messages they refuse with.

Every check says the rule and the kind of value it got: numbers, booleans and null are shown, texts never, because any
text of a configuration may be a key that was put in the wrong place. Values are never converted between types.
"""

import difflib
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SecretStr,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from combos.core.limits import COST_MAX, HEADER_VALUE_MAX, MODEL_ID_MAX, TEXT_MAX, TIMEOUT_MAX_MS, TOKENS_MAX, URL_MAX
from combos.core.values import dataclass

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_BUT_LAYOUT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class ConfigModel(BaseModel):
    """Base of the configuration's objects: frozen, camelCase keys in the file, unknown keys and key order kept."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )
    _order: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, data: Any, handler: ModelWrapValidatorHandler["ConfigModel"]) -> "ConfigModel":
        made = handler(cls._spelled_out(data))
        if isinstance(data, Mapping) and data:
            made._order = tuple(data)
        return made

    @property
    def key_order(self) -> tuple[str, ...]:
        """Keys in the order in which they were written; empty for objects that were not read from a document."""
        return self._order

    def written_short(self) -> object:
        """The short way this object was written in, if it was."""
        return None

    @classmethod
    def _spelled_out(cls, data: Any) -> Any:
        """The object that a short way of writing stands for."""
        return data

    def __repr_args__(self) -> Any:
        """Only the declared fields: an unknown key may be a misspelt `apiKey`."""
        return [(name, getattr(self, name)) for name, field in type(self).model_fields.items() if field.repr]


def shown(value: object) -> str:
    """What a message may show of a value that was to be a number or a word: numbers in full, else the kind."""
    return json.dumps(value)[:40] if isinstance(value, int | float) else kind_of(value)


def kind_of(value: object) -> str:
    """The JSON kind of a value, as a message names it. All that may be said where a secret could stand."""
    match value:
        case None:
            return "null"
        case bool():
            return json.dumps(value)
        case int() | float():
            return "a number"
        case str():
            return "a string" if value else "an empty string"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return "another value"


def refusal(message: str) -> PydanticCustomError:
    """The error of a value check. The text travels as a parameter, because pydantic's messages are templates."""
    return PydanticCustomError("rule", "{text}", {"text": message})


def refuse(rule: str, value: object) -> PydanticCustomError:
    """`must be <rule>, got <value or kind>`; not for secrets."""
    return refusal(f"must be {rule}, got {shown(value)}")


def near_miss(word: str, known: list[str]) -> str:
    """`; did you mean "…"?`, or nothing. Shows the known word, never the one that was written."""
    close = difflib.get_close_matches(word[:100], known, n=1, cutoff=0.75)
    return f'; did you mean "{close[0]}"?' if close else ""


def _meant(word: str, words: list[str]) -> str:
    """As `near_miss`; a word that several of the list begin with or hold stands for all of them."""
    part = word.strip().lower()
    longer = [known for known in words if len(part) > 2 and part in known]
    if not longer:
        return near_miss(part, words)
    return f"; did you mean {' or '.join(f'"{known}"' for known in longer)}?"


class ValueCheck:
    """Annotation of a value that is checked by one function and described by one JSON schema."""

    def check(self, value: object) -> object:
        """The value to keep; raises the error of the broken rule."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the written value."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return self.schema()


@dataclass(frozen=True, slots=True)
class Between(ValueCheck):
    """A JSON integer within bounds, both included. `1.0`, `"1"` and `true` are no integers."""

    low: int
    high: int

    def check(self, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise refuse(f"an integer from {self.low} to {self.high}", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True, slots=True)
class Amount(ValueCheck):
    """A JSON number from 0 to `high`."""

    high: int

    def check(self, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= self.high:
            raise refuse(f"a number from 0 to {self.high}", value)
        return float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": 0, "maximum": self.high}


class Boolean(ValueCheck):
    """`true` or `false`."""

    def check(self, value: object) -> object:
        if not isinstance(value, bool):
            raise refuse("true or false", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class TextOf(ValueCheck):
    """A string with a bounded number of characters and no control characters (`layout` allows TAB, LF and CR)."""

    low: int
    high: int
    layout: bool = False

    def check(self, value: object) -> object:
        if not isinstance(value, str):
            raise refusal(f"must be a string, got {kind_of(value)}")
        if not self.low <= len(value) <= self.high:
            got = f"{len(value)} characters" if value else "an empty string"
            raise refusal(f"must be a string of {self.low} to {self.high} characters, got {got}")
        if (_CONTROL_BUT_LAYOUT if self.layout else CONTROL).search(value):
            raise refusal("must not hold control characters" + (" except tabs and line breaks" if self.layout else ""))
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": self.low, "maxLength": self.high}


@dataclass(frozen=True, slots=True)
class Trimmed(ValueCheck):
    """A string that is stored without surrounding blanks; nothing left means no value (None)."""

    high: int

    def check(self, value: object) -> object:
        text = value.strip() if isinstance(value, str) else value
        return TextOf(0, self.high).check(text) or None

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


@dataclass(frozen=True, slots=True)
class TextOrTexts(ValueCheck):
    """One string or an array of strings; kept as written."""

    def check(self, value: object) -> object:
        text = TextOf(1, TEXT_MAX)
        if isinstance(value, list | tuple):
            return tuple(text.check(part) for part in value)
        if not isinstance(value, str):
            raise refusal(f"must be a string or an array of strings, got {kind_of(value)}")
        return text.check(value)

    def schema(self) -> dict[str, Any]:
        text = TextOf(1, TEXT_MAX).schema()
        return {"anyOf": [text, {"type": "array", "items": text}]}


@dataclass(frozen=True, slots=True)
class Instant(ValueCheck):
    """A point in time: epoch milliseconds, or any text."""

    def check(self, value: object) -> object:
        return TextOf(1, TEXT_MAX).check(value) if isinstance(value, str) else Between(0, 2**53).check(value)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [Between(0, 2**53).schema(), TextOf(1, TEXT_MAX).schema()]}


@dataclass(frozen=True, slots=True)
class SecretText(ValueCheck):
    """A key as it is written: the key itself or a reference to it. Hidden in reprs."""

    def check(self, value: object) -> object:
        if isinstance(value, SecretStr):
            return value
        return SecretStr(str(TextOf(1, TEXT_MAX).check(value)))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": TEXT_MAX}


@dataclass(frozen=True, slots=True)
class OneOf(ValueCheck):
    """A word of a closed list. `synonyms` are accepted spellings of a member."""

    enum: type[StrEnum]
    synonyms: tuple[tuple[str, str], ...] = ()

    def check(self, value: object) -> object:
        words = [member.value for member in self.enum]
        word = dict(self.synonyms).get(value, value) if isinstance(value, str) else value
        if isinstance(word, str) and word in words:
            return self.enum(word)
        near = _meant(word, words) if isinstance(word, str) else ""
        raise refusal(f"must be one of {', '.join(words)}, got {kind_of(value)}{near}")

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": [member.value for member in self.enum] + [word for word, _ in self.synonyms]}


class Effort(StrEnum):
    """Rungs of a reasoning effort ladder, ascending."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"
    ULTRA = "ultra"


type Flag = Annotated[bool, Boolean()]
type Text = Annotated[str, TextOf(1, TEXT_MAX)]
type LongText = Annotated[str, TextOf(0, HEADER_VALUE_MAX)]
type Url = Annotated[str, TextOf(1, URL_MAX)]
type ModelId = Annotated[str, TextOf(1, MODEL_ID_MAX)]
type Key = Annotated[SecretStr, SecretText()]
type Tokens = Annotated[int, Between(1, TOKENS_MAX)]
type Millis = Annotated[int, Between(1, TIMEOUT_MAX_MS)]
type Cost = Annotated[float, Amount(COST_MAX)]
type Rung = Annotated[Effort, OneOf(Effort)]
