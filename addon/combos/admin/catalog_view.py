"""The model list that a configuration file alone yields, for the command line. Asks no provider."""

from pathlib import Path

from combos.admin.regular_file import read_regular
from combos.core.catalog import Omitted, build_catalog
from combos.core.config_text import parse_config_text
from combos.core.limits import CONFIG_BYTES_MAX
from combos.core.registry import build_registry
from combos.wire.catalog_merge import merge_into
from combos.wire.catalog_shape import ListRequest, Shape, render

SHAPES = tuple(shape.value for shape in Shape)


def catalog_of_file(path: Path, shape: str, base: bytes | None = None) -> tuple[bytes, tuple[Omitted, ...]]:
    """The list as JSON, and what is not listed. Raises `OSError`, and `ConfigError` for a file that is not valid.

    `shape` is one of `SHAPES`; Messages rows get the names that Claude Code accepts. `base`: a list of the vendor in
    this shape, to which the combos are added.
    """
    catalog = build_catalog(build_registry(parse_config_text(read_regular(path, CONFIG_BYTES_MAX)), 0))
    wanted = ListRequest(Shape(shape), encoded_ids=True)
    return render(catalog, wanted) if base is None else merge_into(base, catalog, wanted), catalog.omitted
