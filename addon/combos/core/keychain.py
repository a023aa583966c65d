"""Which keychain entries a configuration refers to. Reads none of them."""

from combos.core.config import Config
from combos.core.secrets import keychain_name


def keychain_names(config: Config) -> frozenset[str]:
    """The entries behind every `keychain:` reference, so that they can be read ahead of their use."""
    written = [provider.api_key for provider in config.providers.values()]
    written += [entry.key for provider in config.providers.values() for entry in provider.api_key_pool]
    written += [entry.key for entry in config.api_keys]
    names = (keychain_name(key.get_secret_value()) for key in written if key is not None)
    return frozenset(name for name in names if name)
