"""The exchange with a target: one aiohttp session, TLS and proxy settings, time limits, credentials."""
