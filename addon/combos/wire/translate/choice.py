"""Applies a tool choice to a tool list for targets that cannot name an allowed subset."""

from combos.wire.translate.ir import Choice, Mode, Request, Tool


def narrowed(request: Request) -> list[Tool]:
    """The tools a target without `allowed_tools` may see: the allowed subset, or all of them."""
    choice = request.choice
    if choice is None or choice.mode is Mode.NAMED or not choice.names:
        return request.tools
    return [tool for tool in request.tools if tool.name in choice.names]


def forced(choice: Choice | None) -> bool:
    """Whether the model has to call a tool."""
    return choice is not None and choice.mode in (Mode.REQUIRED, Mode.NAMED)


def named_tool(request: Request, name: str) -> Tool | None:
    """The declared tool a choice names."""
    return next((tool for tool in request.tools if tool.name == name), None)
