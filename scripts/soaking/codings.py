"""Content codings, as providers use them unasked and as clients undo them."""

import sys
import zlib

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CODINGS = ("gzip", "deflate", "br", "zstd")


class CodingError(Exception):
    """The bytes are not in the coding."""


def packed(coding: str, body: bytes) -> bytes:
    """The body in this coding."""
    match coding:
        case "gzip":
            packer = zlib.compressobj(wbits=31)
            return packer.compress(body) + packer.flush()
        case "br":
            return bytes(brotli.compress(body))
        case "zstd":
            return bytes(zstd.compress(body))
        case _:
            return zlib.compress(body)


def unpacked(coding: str, body: bytes) -> bytes:
    """What is there of the body. Raises `CodingError`."""
    try:
        match coding:
            case "":
                return body
            case "gzip" | "deflate":
                return zlib.decompressobj(wbits=47).decompress(body)
            case "br":
                return bytes(brotli.Decompressor().process(body))
            case "zstd":
                return bytes(zstd.ZstdDecompressor().decompress(body))
    except (zlib.error, brotli.error, zstd.ZstdError) as error:
        raise CodingError(str(error)) from error
    raise CodingError(coding)
