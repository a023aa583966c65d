"""Where a provider's host name leads, looked up when the provider is saved; every connection is checked again."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from combos.core.config import ProviderConfig
from combos.core.config_problems import problem
from combos.core.destinations import Destination, classify_address, literal_address, split_url
from combos.core.errors import ConfigProblem

LOOKUP_S = 3.0

type Resolve = Callable[[str], Awaitable[Sequence[str]]]


async def resolve(host: str) -> Sequence[str]:
    """The addresses of a host. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def destination_problems(name: str, provider: ProviderConfig, lookup: Resolve) -> tuple[ConfigProblem, ...]:
    """What is wrong with the addresses of a provider's host. A host that cannot be looked up now is not judged."""
    parts = split_url(provider.base_url)
    host = None if isinstance(parts, str) else parts.hostname
    if not host or literal_address(host) is not None:
        return ()  # judged as written
    try:
        async with asyncio.timeout(LOOKUP_S):
            addresses = await lookup(host)
    except (OSError, UnicodeError, TimeoutError):
        return ()
    for address in addresses:
        rule, destination = classify_address(ip_address(address.partition("%")[0]))
        if destination is Destination.FORBIDDEN:
            return (problem(("providers", name, "baseUrl"), f"resolves to a {rule} address, which is never allowed"),)
        if destination is Destination.PRIVATE and not provider.allow_private_network:
            message = f"resolves to a {rule} address; that needs allowPrivateNetwork: true"
            return (problem(("providers", name, "baseUrl"), message),)
    return ()
