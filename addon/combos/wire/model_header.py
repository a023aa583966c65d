"""The model that an event of a Responses stream names as an HTTP header: `{"headers":{"openai-model":"…"}}`.

Codex compares it with the model it asked for, and tells its user of a rerouted and flagged account when they differ.
`response.model` may differ freely and is left alone, as is every other byte.
"""

import re

import orjson

_NAME, _OTHER_NAME = b'"openai-model"', b'"OpenAI-Model"'
# Quotes inside a JSON string are escaped, so text about such a header does not match.
_MEMBER = re.compile(rb'((?:"openai-model"|"OpenAI-Model")\s*:\s*)"(?:[^"\\]|\\.)*"')


def with_requested_model(data: bytes, model: str) -> bytes:
    """The bytes with the model that the client asked for in place of the target's.

    A name that lies across two pieces of a stream is not found: what follows from that is a wrong notice, no wrong
    answer.
    """
    if data.find(_NAME) < 0 and data.find(_OTHER_NAME) < 0:
        return data
    value = orjson.dumps(model)
    return _MEMBER.sub(lambda found: found[1] + value, data)
