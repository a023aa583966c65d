"""TLS towards upstreams with an own authority: what is trusted, what is presented, which settings are refused."""

import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from authority import Authority
from combos.core.facts import TransportFault
from combos.upstream.session import Upstream, UpstreamSettings
from combos.upstream.tls import TlsContexts, TlsError, TlsSettings
from exchanges import exchange, fault_of_exchange, outbound
from rawserver import Again, Expect, RawServer, Send, response

SERVE = [Again([Expect(), Send(response(200, b"{}"))])]
LOCAL = ("127.0.0.1", "localhost")

type Make = Callable[[TlsSettings], Upstream]


@pytest.fixture
async def upstream_with() -> AsyncIterator[Make]:
    """Makes sessions with TLS settings and closes them."""
    made: list[Upstream] = []

    def make(settings: TlsSettings) -> Upstream:
        made.append(Upstream(UpstreamSettings(tls=settings)))
        return made[-1]

    yield make
    for upstream in made:
        await upstream.close()


async def tls_fault(upstream: Upstream, url: str) -> str:
    """The detail of an exchange that fails in TLS."""
    fault = await fault_of_exchange(upstream, outbound(url))
    assert fault is not None
    assert fault.fault is TransportFault.TLS
    return fault.detail


async def test_a_trusted_authority(authority: Authority, upstream_with: Make) -> None:
    upstream = upstream_with(TlsSettings(trusted_ca=str(authority.ca_file)))
    async with RawServer(SERVE, tls=authority.server(*LOCAL)) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        await exchange(upstream, outbound(server.url))
        assert server.connections == 1, "TLS connections are pooled too"
        assert await exchange(upstream, outbound(f"https://localhost:{server.port}")) == (200, b"{}")


async def test_an_untrusted_authority(authority: Authority, stranger: Authority, upstream_with: Make) -> None:
    async with RawServer(SERVE, tls=stranger.server(*LOCAL)) as server:
        for settings in (TlsSettings(), TlsSettings(trusted_ca=str(authority.ca_file))):
            detail = await tls_fault(upstream_with(settings), server.url)
            assert "unable to get local issuer certificate" in detail
        assert server.requests == []


async def test_another_host_name(authority: Authority, upstream_with: Make) -> None:
    upstream = upstream_with(TlsSettings(trusted_ca=str(authority.ca_file)))
    async with RawServer(SERVE, tls=authority.server("vendor.example")) as server:
        assert "IP address mismatch" in await tls_fault(upstream, server.url)
        assert "Hostname mismatch" in await tls_fault(upstream, f"https://localhost:{server.port}")


async def test_verification_can_be_switched_off(stranger: Authority, upstream_with: Make) -> None:
    upstream = upstream_with(TlsSettings(verify=False))
    async with RawServer(SERVE, tls=stranger.server("vendor.example")) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")


async def test_a_directory_of_authorities(authority: Authority, upstream_with: Make, tmp_path: Path) -> None:
    from OpenSSL import crypto

    pem = authority.ca_file.read_bytes()
    name = crypto.load_certificate(crypto.FILETYPE_PEM, pem).subject_name_hash()
    (tmp_path / f"{name:08x}.0").write_bytes(pem)
    upstream = upstream_with(TlsSettings(trusted_confdir=str(tmp_path)))
    async with RawServer(SERVE, tls=authority.server(*LOCAL)) as server:
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")


async def test_client_certificates(authority: Authority, upstream_with: Make, tmp_path: Path) -> None:
    trusted = str(authority.ca_file)
    one_file = str(authority.issue("client", client=True))
    (folder := tmp_path / "by-host").mkdir()
    authority.issue("client", client=True, path=folder / "127.0.0.1.pem")
    async with RawServer(SERVE, tls=authority.server(*LOCAL, client_required=True)) as server:
        for certs in (one_file, str(folder)):
            upstream = upstream_with(TlsSettings(trusted_ca=trusted, client_certs=certs))
            assert await exchange(upstream, outbound(server.url)) == (200, b"{}")


@pytest.mark.parametrize("highest", ["TLS1_2", "TLS1_3"])
async def test_a_missing_client_certificate(
    authority: Authority, upstream_with: Make, tmp_path: Path, highest: str
) -> None:
    """With TLS 1.3 the alert comes after the handshake seemed to be over: the request has been sent by then."""
    settings = TlsSettings(trusted_ca=str(authority.ca_file), client_certs=str(tmp_path), max_version=highest)
    with alerting_server(authority.server(*LOCAL, client_required=True)) as port:
        detail = await tls_fault(upstream_with(settings), f"https://127.0.0.1:{port}")
    assert "CERTIFICATE_REQUIRED" in detail or "HANDSHAKE_FAILURE" in detail


@contextlib.contextmanager
def alerting_server(context: ssl.SSLContext) -> Iterator[int]:
    """A blocking server for one connection; asyncio's own sends no alert when a handshake fails."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_side=True)
            while data := connection.recv(65536):
                incoming.write(data)
                with contextlib.suppress(ssl.SSLError):
                    tls.do_handshake()
                connection.sendall(outgoing.read())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


async def test_versions_that_do_not_meet(authority: Authority, upstream_with: Make) -> None:
    context = authority.server(*LOCAL)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    trusted = str(authority.ca_file)
    async with RawServer(SERVE, tls=context) as server:
        await tls_fault(upstream_with(TlsSettings(trusted_ca=trusted, min_version="TLS1_3")), server.url)
        good = upstream_with(
            TlsSettings(trusted_ca=trusted, max_version="TLS1_2", ciphers="ECDHE-ECDSA-AES256-GCM-SHA384")
        )
        assert await exchange(good, outbound(server.url)) == (200, b"{}")


async def test_other_settings_take_effect_at_once(authority: Authority, upstream_with: Make) -> None:
    upstream = upstream_with(TlsSettings())
    async with RawServer(SERVE, tls=authority.server(*LOCAL)) as server:
        await tls_fault(upstream, server.url)
        upstream.configure(UpstreamSettings(tls=TlsSettings(trusted_ca=str(authority.ca_file))))
        assert await exchange(upstream, outbound(server.url)) == (200, b"{}")
        upstream.configure(UpstreamSettings())
        await tls_fault(upstream, server.url)
        with pytest.raises(TlsError):
            upstream.configure(UpstreamSettings(tls=TlsSettings(verify=False, trusted_ca="/nowhere")))
        await tls_fault(upstream, server.url)


def encrypted_key(path: Path) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    encryption = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    return str(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trusted_ca": "/nowhere/ca.pem"}, "ssl_verify_upstream_trusted_ca: cannot load /nowhere/ca.pem"),
        ({"trusted_ca": "GARBAGE"}, "ssl_verify_upstream_trusted_ca: cannot load"),
        ({"trusted_confdir": "/nowhere"}, "ssl_verify_upstream_trusted_confdir: no such directory: /nowhere"),
        ({"client_certs": "/nowhere.pem"}, "client_certs: no such file or directory: /nowhere.pem"),
        ({"client_certs": "GARBAGE"}, "client_certs: cannot load"),
        ({"client_certs": "ENCRYPTED"}, "client_certs: cannot load"),
        ({"min_version": "TLS9"}, "unknown TLS version 'TLS9'"),
        ({"ciphers": "NONSENSE"}, "ciphers_server: no usable cipher in 'NONSENSE'"),
    ],
)
def test_unusable_settings_are_refused_when_they_are_set(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    (garbage := tmp_path / "garbage.pem").write_text("no certificate")
    files = {"GARBAGE": str(garbage), "ENCRYPTED": encrypted_key(tmp_path / "key.pem")}
    made = TlsSettings(**{name: files.get(value, value) for name, value in settings.items()})
    with pytest.raises(TlsError) as caught:
        TlsContexts(made).check()
    assert message in str(caught.value)


async def test_an_unusable_certificate_of_one_host(upstream_with: Make, tmp_path: Path) -> None:
    (tmp_path / "127.0.0.1.pem").write_text("no certificate")
    upstream = upstream_with(TlsSettings(client_certs=str(tmp_path)))
    assert "client_certs: cannot load" in await tls_fault(upstream, "https://127.0.0.1:9")


def test_hosts_share_a_context_unless_they_have_a_certificate(authority: Authority, tmp_path: Path) -> None:
    authority.issue("client", client=True, path=tmp_path / "a.example.pem")
    contexts = TlsContexts(TlsSettings(client_certs=str(tmp_path)))
    assert contexts.for_host("b.example") is contexts.for_host("c.example")
    assert contexts.for_host("a.example") is contexts.for_host("a.example")
    assert contexts.for_host("a.example") is not contexts.for_host("b.example")


def test_old_versions_can_be_chosen_by_name() -> None:
    context = TlsContexts(TlsSettings(min_version="TLS1", max_version="UNBOUNDED")).for_host("a.example")
    assert context.minimum_version is ssl.TLSVersion.TLSv1
