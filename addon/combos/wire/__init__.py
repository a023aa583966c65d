"""Bytes to facts and back: content codings, SSE framing, dialects, headers. Nothing here decides."""
