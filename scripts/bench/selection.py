"""Shares and speed of the selection strategies: picks per strategy (default 1 000 000), all successful.

Prints per strategy the share of each target and picks per second, and fails below the required speed. The last
row is whole selection: eligibility, cooldowns and strategy together.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "addon"), str(ROOT / "tests")]

from combos.core.config_combo import Strategy  # noqa: E402
from combos.core.registry import Target  # noqa: E402
from combos.core.strategies import Evidence, RotationState, choose  # noqa: E402
from combos.engine.select import Selector  # noqa: E402
from combos.engine.speech import Speech  # noqa: E402
from combos.engine.state import PickedFrom  # noqa: E402
from playbook import World, config  # noqa: E402

REQUIRED = 100_000
WEIGHTS = (5, 3, 2)


def report(name: str, count: int, pick: Callable[[], str]) -> bool:
    seen: Counter[str] = Counter()
    begin = time.perf_counter()
    for _ in range(count):
        seen[pick()] += 1
    rate = count / (time.perf_counter() - begin)
    shares = " ".join(f"{key} {share / count:.4f}" for key, share in sorted(seen.items()))
    print(f"{name:14} {rate:12,.0f} picks/s  {shares}")
    return rate >= REQUIRED


def strategy_pick(strategy: Strategy) -> Callable[[], str]:
    targets = [Target(f"{name}/m", name, "m", None, None, weight) for name, weight in zip("abc", WEIGHTS, strict=True)]
    state, evidence = RotationState(), Evidence(random.Random(1).random, lambda t: 1 if t.key == "b/m" else None)

    def pick() -> str:
        key = choose(strategy, targets, state, evidence).key
        state.succeeded(key, 1)
        return key

    return pick


def whole_pick() -> Callable[[], str]:
    world = World(config("alpha/m:5", "beta/m:3", "gamma/m:2", strategy="round-robin"))
    origin = PickedFrom(world.registry.combos["main"], world.registry.generation)
    request = world.request()
    selector = Selector(request, world.state, origin, Speech(request, world.state), encrypted=False)
    now = world.now

    def pick() -> str:
        chosen = selector.at_once((), now)
        assert chosen is not None
        world.state.succeeded(origin, chosen.target, None, now)
        return chosen.target.key

    return pick


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    fast = [report(strategy.value, count, strategy_pick(strategy)) for strategy in Strategy]
    report("whole", count // 10, whole_pick())
    return 0 if all(fast) else 1


if __name__ == "__main__":
    sys.exit(main())
