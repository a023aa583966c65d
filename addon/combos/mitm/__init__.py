"""The only place that imports mitmproxy."""
