"""Images and files in requests: data URLs, media types, and the parts no other provider could fetch or read."""

from combos.wire.translate.ir import Media
from combos.wire.translate.shape import Json, Unsupported, as_dict, as_str

ANTHROPIC_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
PDF = "application/pdf"


def from_url(url: str, *, image: bool, where: str, detail: str | None = None, filename: str | None = None) -> Media:
    """Media behind a data URL or a web address. Raises Unsupported for anything else."""
    if url.startswith(("https://", "http://")):
        return Media(image, where, url=url, detail=detail, filename=filename)
    if not url.startswith("data:"):
        raise Unsupported(where, "is neither inline data nor a web address")
    head, comma, data = url[5:].partition(",")
    if not comma or not head.endswith(";base64"):
        raise Unsupported(where, "is not base64 data")
    return Media(image, where, head.partition(";")[0], data, detail=detail, filename=filename)


def data_url(media: Media) -> str:
    """The web address, or the inline data as a data URL."""
    return media.url or f"data:{media.media_type};base64,{media.data}"


def from_anthropic(block: Json, *, image: bool, where: str) -> Media:
    """The media of an image or document block. Raises Unsupported for file ids."""
    source = as_dict(block.get("source"))
    title = as_str(block.get("title")) or None
    kind = source.get("type")
    if kind == "base64":
        default = "image/png" if image else PDF
        media_type = as_str(source.get("media_type")) or default
        return Media(image, where, media_type, as_str(source.get("data")), filename=title)
    if kind == "url" and as_str(source.get("url")):
        return Media(image, where, url=as_str(source.get("url")), filename=title)
    raise Unsupported(where, "refers to a file kept by another provider")


def to_anthropic(media: Media) -> Json:
    """An image or document block. Raises Unsupported for media types the API does not take."""
    if media.url:
        source: Json = {"type": "url", "url": media.url}
    else:
        allowed = media.media_type in ANTHROPIC_IMAGES if media.image else media.media_type == PDF
        if not allowed:
            raise Unsupported(media.where, f"has media type {media.media_type!r}, which this target does not take")
        source = {"type": "base64", "media_type": media.media_type, "data": media.data}
    block: Json = {"type": "image" if media.image else "document", "source": source}
    if media.filename and not media.image:
        block["title"] = media.filename
    return block


def to_responses(media: Media) -> Json:
    """An `input_image` or `input_file` part."""
    if media.image:
        return {"type": "input_image", "detail": media.detail or "auto", "image_url": data_url(media)}
    if media.url:
        return {"type": "input_file", "file_url": media.url}
    return {"type": "input_file", "filename": media.filename or "file.pdf", "file_data": data_url(media)}


def to_chat(media: Media) -> Json:
    """An `image_url` or `file` part. Raises Unsupported for files by address."""
    if media.image:
        url: Json = {"url": data_url(media)}
        if media.detail:
            url["detail"] = "high" if media.detail == "original" else media.detail
        return {"type": "image_url", "image_url": url}
    if media.url:
        raise Unsupported(media.where, "is a file by address, which this target does not fetch")
    return {"type": "file", "file": {"filename": media.filename or "file.pdf", "file_data": data_url(media)}}


def to_gemini(media: Media) -> Json:
    """An `inlineData` part. Raises Unsupported for media by address."""
    if media.url:
        raise Unsupported(media.where, "is media by address, which this target does not fetch")
    return {"inlineData": {"mimeType": media.media_type, "data": media.data}}
