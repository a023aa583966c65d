"""HTTP/2 clients: several requests at once through one tunnel; small windows, resets of streams, lost connections."""

import asyncio
import contextlib
import random
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from asks import Ask
from heard import Answer
from oneone import Client, Look

_FORBIDDEN = {"connection", "transfer-encoding"}


class Client2:
    """One HTTP/2 connection to the proxy."""

    def __init__(self, port: int, tls: ssl.SSLContext, look: Look) -> None:
        self._client = Client(port, "http2", tls, look)
        self._conn: h2.connection.H2Connection | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._host = ""
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, tuple[Ask, Answer, asyncio.Event]] = {}

    @property
    def usable(self) -> bool:
        """Whether another request can be sent on it."""
        return self._writer is not None

    async def ask(self, asks: list[Ask], patience_s: float) -> list[Answer]:
        """Send all requests at once, and read the answers as they come. `patience_s`: so long may nothing arrive."""
        answers = [Answer() for _ in asks]
        try:
            if self._conn is None:
                await self._open(asks[0])
            pairs = zip(asks, answers, strict=True)
            await asyncio.gather(*(self._one(ask, answer, patience_s) for ask, answer in pairs))
        except (OSError, h2.exceptions.ProtocolError, asyncio.IncompleteReadError) as error:
            answers[0].reason = repr(error)
            self.close()
        return answers

    async def _open(self, ask: Ask) -> None:
        self._host = ask.host
        reader, self._writer = await self._client.connect(self._host)
        conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        window = random.Random(ask.number).choice((4_000, 16_000, 65_535, 2**20))
        initial = {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window, h2.settings.SettingCodes.ENABLE_PUSH: 0}
        conn.local_settings = h2.settings.Settings(client=True, initial_values=initial)
        conn.initiate_connection()
        self._conn = conn
        self._flush()
        self._reading = asyncio.create_task(self._read(reader))

    async def _one(self, ask: Ask, answer: Answer, patience_s: float) -> None:
        stream, done = await self._send(ask, answer)
        leaving = ask.leaving
        wait_s = patience_s
        if leaving is not None:
            wait_s = 0.001 if leaving.in_request else leaving.after_s if leaving.after_s is not None else 0.05
        try:
            await _over(answer, done, wait_s, grows=leaving is None)
        except TimeoutError:
            answer.left, answer.hung = True, leaving is None
            answer.reason = await self._client.stuck(answer) if leaving is None else ""
            self._leave(stream, leaving.how if leaving else "close")
        finally:
            self._answers.pop(stream, None)

    async def _send(self, ask: Ask, answer: Answer) -> tuple[int, asyncio.Event]:
        conn, body = self._conn, ask.body()
        if conn is None or self._writer is None:
            raise ConnectionError("lost")
        stream = conn.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "https"), (":authority", self._host), (":path", ask.path)]
        conn.send_headers(stream, [*head, *((name, value) for name, value in ask.fields() if name not in _FORBIDDEN)])
        done = asyncio.Event()
        self._answers[stream] = ask, answer, done
        answer.sent = not (ask.leaving and ask.leaving.in_request)
        while body and answer.sent and not done.is_set():
            size = min(conn.local_flow_control_window(stream), conn.max_outbound_frame_size, len(body))
            if size:
                conn.send_data(stream, body[:size])
                body = body[size:]
                self._flush()
            else:
                await asyncio.sleep(0.002)
        if answer.sent and not done.is_set():
            conn.end_stream(stream)
        self._flush()
        return stream, done

    def _leave(self, stream: int, how: str) -> None:
        if self._conn is None:
            return
        if how == "reset" or len(self._answers) > 1:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self._conn.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
                self._flush()
            return
        self.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        assert self._conn is not None
        conn = self._conn
        try:
            while data := await reader.read(65_536):
                for event in conn.receive_data(data):
                    self._on(conn, event)
                self._flush()
        except (OSError, h2.exceptions.ProtocolError) as error:
            for _, answer, _ in self._answers.values():
                answer.reason = repr(error)
        for _, _, done in self._answers.values():
            done.set()
        self._writer, self._conn = None, None

    def _on(self, conn: h2.connection.H2Connection, event: h2.events.Event) -> None:
        found = self._answers.get(getattr(event, "stream_id", None) or 0)
        if isinstance(event, h2.events.DataReceived):
            self._credit(conn, event, found[0].slow_s if found else 0.0)
        if found is None:
            return
        _, answer, done = found
        match event:
            case h2.events.ResponseReceived(headers=headers):
                answer.fields = {str(name): str(value) for name, value in headers or ()}
                answer.status = int(answer.fields.pop(":status"))
            case h2.events.DataReceived(data=data):
                answer.body += data or b""
            case h2.events.StreamEnded():
                answer.clean = True
                done.set()
            case h2.events.StreamReset():
                answer.reason = "reset"
                done.set()

    def _credit(self, conn: h2.connection.H2Connection, event: h2.events.DataReceived, slow_s: float) -> None:
        """Open the window again: at once, or late."""
        size, stream = event.flow_controlled_length or 0, event.stream_id or 0

        def acknowledge() -> None:
            with contextlib.suppress(h2.exceptions.ProtocolError, KeyError):
                conn.acknowledge_received_data(size, stream)
                self._flush()

        if not size:
            return
        if slow_s:
            asyncio.get_running_loop().call_later(slow_s * 5, acknowledge)
        else:
            acknowledge()

    def _flush(self) -> None:
        if self._conn is not None and self._writer is not None:
            self._writer.write(self._conn.data_to_send())

    def close(self) -> None:
        """Close the connection; what is under way on it is lost."""
        for _, answer, done in self._answers.values():
            answer.left = answer.left or not answer.clean
            done.set()
        if self._writer is not None:
            self._writer.close()
        if self._reading is not None and self._reading is not asyncio.current_task():
            self._reading.cancel()
        self._writer, self._conn, self._reading = None, None, None


async def _over(answer: Answer, done: asyncio.Event, wait_s: float, *, grows: bool) -> None:
    """Return at the end of the answer. TimeoutError: it did not come in time, and when `grows`, no more of it did."""
    while True:
        before = len(answer.body)
        try:
            async with asyncio.timeout(wait_s):
                await done.wait()
        except TimeoutError:
            if not grows or len(answer.body) == before:
                raise
        else:
            return
