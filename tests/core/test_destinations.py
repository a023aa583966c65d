"""Base URLs and address classes."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.destinations import (
    Destination,
    base_url_fault,
    classify_address,
    classify_host,
    decision_url_fault,
    is_systemone_url,
    literal_address,
    proxy_url_fault,
)


@pytest.mark.parametrize(
    ("host", "rule", "destination"),
    [
        ("api.openai.com", "public", Destination.PUBLIC),
        ("8.8.8.8", "public", Destination.PUBLIC),
        ("2606:4700::1111", "public", Destination.PUBLIC),
        ("localhost", "loopback", Destination.PRIVATE),
        ("LOCALHOST.", "loopback", Destination.PRIVATE),
        ("x.localhost", "loopback", Destination.PRIVATE),
        ("notlocalhost", "public", Destination.PUBLIC),
        ("127.0.0.1", "loopback", Destination.PRIVATE),
        ("127.255.255.255", "loopback", Destination.PRIVATE),
        ("128.0.0.0", "public", Destination.PUBLIC),
        ("::1", "loopback", Destination.PRIVATE),
        ("10.0.0.1", "private", Destination.PRIVATE),
        ("172.15.255.255", "public", Destination.PUBLIC),
        ("172.16.0.0", "private", Destination.PRIVATE),
        ("172.31.255.255", "private", Destination.PRIVATE),
        ("172.32.0.0", "public", Destination.PUBLIC),
        ("192.168.1.1", "private", Destination.PRIVATE),
        ("100.64.0.1", "shared (CGNAT)", Destination.PRIVATE),
        ("100.128.0.0", "public", Destination.PUBLIC),
        ("fd00::1", "unique local", Destination.PRIVATE),
        ("192.0.2.1", "documentation", Destination.PRIVATE),
        ("2001:db8::1", "documentation", Destination.PRIVATE),
        ("198.18.0.1", "benchmark", Destination.PRIVATE),
        ("224.0.0.1", "multicast", Destination.PRIVATE),
        ("ff02::1", "multicast", Destination.PRIVATE),
        ("255.255.255.255", "reserved", Destination.PRIVATE),
        ("0.0.0.0", "unspecified", Destination.FORBIDDEN),
        ("::", "unspecified", Destination.FORBIDDEN),
        ("169.254.1.1", "link-local", Destination.FORBIDDEN),
        ("fe80::1", "link-local", Destination.FORBIDDEN),
        ("fe80::1%eth0", "link-local", Destination.FORBIDDEN),
        ("169.254.169.254", "metadata", Destination.FORBIDDEN),
        ("fd00:ec2::254", "metadata", Destination.FORBIDDEN),
        ("metadata.google.internal", "metadata", Destination.FORBIDDEN),
        ("Metadata.Google.Internal.", "metadata", Destination.FORBIDDEN),
        ("::ffff:169.254.169.254", "metadata", Destination.FORBIDDEN),
        ("::ffff:127.0.0.1", "loopback", Destination.PRIVATE),
        ("64:ff9b::7f00:1", "loopback", Destination.PRIVATE),
        ("2002:7f00:1::", "loopback", Destination.PRIVATE),
        ("::ffff:8.8.8.8", "public", Destination.PUBLIC),
    ],
)
def test_classes(host: str, rule: str, destination: Destination) -> None:
    assert classify_host(host) == (rule, destination)


@given(st.ip_addresses())
def test_every_address_has_a_class_and_python_agrees_on_global_ones(address: object) -> None:
    parsed = ip_address(str(address))
    _, destination = classify_address(parsed)
    if parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified or parsed.is_multicast:
        assert destination is not Destination.PUBLIC
    assert literal_address(str(address)) == parsed


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("https://api.openai.com/v1", None),
        ("http://api.example", None),
        ("https://api.example:8443/v1/", None),
        ("https://[2606:4700::1111]:443", None),
        ("HTTPS://API.example", None),
        ("https://xn--bcher-kva.example", None),
        ("ftp://api.example", "beginning with"),
        ("api.example/v1", "beginning with"),
        ("https://", "beginning with"),
        ("https:///v1", "beginning with"),
        ("", "beginning with"),
        ("https://user@api.example", "user name"),
        ("https://user:pw@api.example", "user name"),
        ("https://@api.example", "user name"),
        ("https://api.example?x=1", "query"),
        ("https://api.example/?", "query"),
        ("https://api.example/#", "fragment"),
        ("https://api.example:0", "port"),
        ("https://api.example:", "port"),
        ("https://api.example:65536", "port from 1 to 65535"),
        ("https://api.example:99999/v1", "port from 1 to 65535"),
        ("https://api.example:x", "port from 1 to 65535"),
        ("https://[::1", "not a URL"),
        ("https://{resource}.openai.azure.com/openai", "placeholder"),
        ("https://api.example/a b", "character"),
        ("https://api.example\\@evil.example", "character"),
        ("https://127.1", "four decimal numbers"),
        ("https://2130706433", "four decimal numbers"),
        ("https://0x7f000001", "four decimal numbers"),
        ("https://0177.0.0.1", "four decimal numbers"),
        ("https://bücher.example", "host name"),
        ("https://１２７.0.0.1", "host name"),
        ("https://a..b", "host name"),
        ("http://127.0.0.1:11434/v1", "allowPrivateNetwork"),
        ("http://localhost:11434/v1", "allowPrivateNetwork"),
        ("http://192.168.0.10/v1", "allowPrivateNetwork"),
        ("http://[::1]:8080", "allowPrivateNetwork"),
        ("http://169.254.169.254/latest", "never allowed"),
        ("http://0.0.0.0:11434/v1", "never allowed"),
    ],
)
def test_base_url(url: str, word: str | None) -> None:
    fault = base_url_fault(url, allow_private=False)
    assert (fault is None) if word is None else (fault is not None and word in fault)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost/v1", True),
        ("http://10.1.2.3", True),
        ("http://[fd00::1]", True),
        ("http://169.254.169.254", False),
        ("http://[fe80::1]", False),
        ("http://metadata.google.internal", False),
        ("http://0.0.0.0", False),
    ],
)
def test_opt_in_opens_private_destinations_only(url: str, allowed: bool) -> None:
    assert (base_url_fault(url, allow_private=True) is None) is allowed


@given(st.text(max_size=60))
def test_any_text_is_judged_without_being_repeated(text: str) -> None:
    marked = f"https://user:9zq9{text}@host"
    fault = base_url_fault(marked, allow_private=False)
    assert fault is not None
    assert "9zq9" not in fault


@pytest.mark.parametrize(
    ("url", "private", "valid"),
    [
        ("https://api.typesafe.ai/v1/systemone", False, True),
        ("http://api.typesafe.ai/v1/systemone", True, False),
        ("http://127.0.0.1:11434/v1/systemone", True, True),
        ("http://127.0.0.1:11434/v1/systemone", False, False),
        ("http://localhost/systemone", True, True),
        ("http://10.0.0.1/systemone", True, True),
        ("http://[fd00::1]/systemone", True, True),
        ("http://100.64.0.1/systemone", True, False),
        ("http://192.0.2.1/systemone", True, False),
    ],
)
def test_decision_url(url: str, private: bool, valid: bool) -> None:
    assert (decision_url_fault(url, allow_private=private) is None) is valid


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://x.example/v1/systemone", True),
        ("https://x.example/v1/systemone/", True),
        ("https://x.example/systemone", True),
        ("https://x.example/v1", False),
        ("https://x.example/notsystemone", False),
        ("https://systemone", False),
        ("https://x.example/systemone?x", False),
    ],
)
def test_systemone_path(url: str, expected: bool) -> None:
    assert is_systemone_url(url) is expected


@pytest.mark.parametrize(
    ("url", "valid"),
    [
        ("http://proxy.example:3128", True),
        ("https://user:pw@proxy.example", True),
        ("http://127.0.0.1:8080", True),
        ("socks5://proxy.example", False),
        ("proxy.example:3128", False),
        ("http://", False),
        ("http://proxy.example:0", False),
        ("http://proxy.example:99999", False),
    ],
)
def test_proxy_url(url: str, valid: bool) -> None:
    assert (proxy_url_fault(url) is None) is valid
