"""The header fields of one message, to be asked by name. Knows no names; what they mean is decided by whoever asks."""

from combos.core.facts import Headers


class Fields:
    """An index made once, for all who ask the same message. Names are in lower case.

    `raw` has the fields as they came: in order, with repetitions. `first` has the first value of each.
    """

    __slots__ = ("first", "raw")

    def __init__(self, raw: Headers) -> None:
        self.raw = raw
        self.first = {name.lower(): value for name, value in reversed(raw)}

    def get(self, name: bytes) -> str | None:
        """The first value of a field, None when it is absent. Bytes above ASCII come out as Latin-1."""
        value = self.first.get(name)
        return None if value is None else value.decode("latin-1").strip()

    def every(self, name: bytes) -> list[bytes]:
        """All values of a field, in order."""
        if name not in self.first:
            return []
        if len(self.first) == len(self.raw):
            return [self.first[name]]
        return [value for key, value in self.raw if key.lower() == name]
