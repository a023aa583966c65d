"""How commands are written: one value for an option, no option twice, and a suggestion for what was misspelt."""

import difflib

import click


class Command(click.Command):
    """A command that takes every option at most once, flags of one choice too, and no option as another one's value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what click would silently accept, then let it parse."""
        self._check(ctx, args)
        return super().parse_args(ctx, args)

    def _check(self, ctx: click.Context, args: list[str]) -> None:
        options = {name: option for option in self.params for name in (*option.opts, *option.secondary_opts)}
        seen: dict[str | None, tuple[click.Parameter, str]] = {}
        following = iter(enumerate(args, start=1))
        for position, argument in following:
            if argument == "--":
                return
            name, equals, _ = argument.partition("=")
            option = options.get(name) if name.startswith("--") else None
            if not isinstance(option, click.Option):
                continue
            before, written = seen.get(option.name, (None, ""))
            if before is not None and before is not option:
                raise click.UsageError(f"{written} and {name} exclude each other", ctx)
            if before is option and not option.multiple:
                raise click.UsageError(f"{name} is given more than once", ctx)
            seen[option.name] = (option, name)
            if not option.is_flag and not equals:
                if position < len(args) and args[position].startswith("--"):
                    raise click.UsageError(f"{name} needs a value, not {args[position].partition('=')[0]}", ctx)
                next(following, None)


class Group(click.Group):
    """A group whose unknown commands are answered with the one that was probably meant."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with a suggestion."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1, cutoff=0.6)
            raise click.UsageError(f"no such command: {name}{_meant(close)}", ctx)
        return super().resolve_command(ctx, args)


Group.group_class = Group


def _meant(close: list[str]) -> str:
    return f'; did you mean "{close[0]}"?' if close else ""


class Whole(click.ParamType):  # type: ignore[type-arg]  # older versions take no argument
    """An integer within bounds; `-` (None) where a field can be cleared."""

    name = "integer"

    def __init__(self, low: int, high: int, *, clears: bool = False) -> None:
        self._low, self._high, self._clears = low, high, clears

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The integer, or `-`."""
        if value == "-" and self._clears:
            return "-"
        try:
            number = int(str(value))
        except ValueError:
            number = self._low - 1
        if not self._low <= number <= self._high:
            or_clear = ", or - to clear" if self._clears else ""
            self.fail(f"must be an integer from {self._low} to {self._high}{or_clear}", param, ctx)
        return number
