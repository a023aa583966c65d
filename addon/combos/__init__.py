"""Combos: failover and load balancing for model traffic, as a mitmproxy addon."""

__version__ = "0.1.0"
