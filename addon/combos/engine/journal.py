"""Who is told of changes to the state that outlives a request, so that they reach other proxies.

The state works the same without anybody listening. Called after the change, and never waits.
"""

from typing import Protocol

from combos.core.cooldowns import CooldownEntry, CooldownKey
from combos.core.recall import LaneKey, Selection


class Journal(Protocol):
    """A listener. Instants are those of the state: monotonic milliseconds."""

    def cooled(self, key: CooldownKey, entry: CooldownEntry) -> None:
        """A target begins to rest."""

    def cleared(self, combo: str | None, target: str | None) -> None:
        """Cooldowns were ended; None stands for all."""

    def forgot(self, combo: str) -> None:
        """A combo begins anew: cooldowns, rotation and counts."""

    def moved(self, combo: str) -> None:
        """The combo's rotation or counts have moved, or are about to before anything else runs."""

    def remembered(self, key: LaneKey, selection: Selection) -> None:
        """A turn has completed on a conversation."""

    def reconciled(self) -> None:
        """Another configuration is in force."""
