"""A gateway inside this process, for a command that finds none running (CLI-6).

It is a whole gateway on the same state directory, reachable by this process only: on a
free port of this machine, with a token that was made up for it. Channels and scheduled jobs
are not started. Whoever starts one says so. The server is loaded only here, and only when
it is needed.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from openclaw.cli.chat_link import leave_signals_to_main_thread
from openclaw.cli.client import CONNECT_TIMEOUT_S, GatewayClient
from openclaw.cli.failures import GatewayUnreachable
from openclaw.cli.place import URL_NAME, Flags, Place, find_place
from openclaw.errors import StoreLocked

if TYPE_CHECKING:
    from openclaw.config.load import LoadedConfig

TOKEN_BYTES: Final = 32
STOP_S: Final = 30.0
_ADVICE: Final = {
    True: "leave --local out to talk to it",
    False: "if it listens elsewhere, name that address with --url and --token, or its port with"
    " OPENCLAW_GATEWAY_PORT",
}


@contextmanager
def reach_gateway(
    flags: Flags,
    scopes: Sequence[str],
    *,
    local: bool,
    on_embedded: Callable[[str], None],
    connect_timeout_s: float = CONNECT_TIMEOUT_S,
) -> Iterator[GatewayClient]:
    """A client of a gateway that answers: the running one or, where none is, one inside this process.

    With `local` only the latter. A gateway that was named with --url, in the environment or in the
    config is never passed over. `on_embedded` hears why there is one in this process.
    """
    client = None if local else _reach_running(flags, scopes, connect_timeout_s)
    if isinstance(client, GatewayClient):
        with closing(client):
            yield client
        return
    try:
        with embedded_gateway() as place:
            on_embedded(client or "Asked for with --local")
            with GatewayClient(place, scopes) as inside:
                yield inside
    except StoreLocked as refusal:
        raise StoreLocked(
            f"a gateway runs already and owns the conversations: {_ADVICE[local]}", **refusal.fields
        ) from refusal


def _reach_running(flags: Flags, scopes: Sequence[str], timeout_s: float) -> GatewayClient | str:
    """The running gateway, or the sentence that says where none is."""
    place = find_place(flags, os.environ)
    named = flags.url is not None or bool(os.environ.get(URL_NAME, "").strip()) or place.remote
    try:
        return GatewayClient(place, scopes, connect_timeout_s=timeout_s).__enter__()
    except GatewayUnreachable:
        if named:
            raise
        return f"No gateway runs at {place.shown_url}"


@contextmanager
def embedded_gateway() -> Iterator[Place]:
    """A gateway in this process for as long as the block lasts. Raises what prevents a start."""
    from openclaw.config.load import config_path, load_or_raise

    env = dict(os.environ)
    mask = os.umask(0o077)  # what it writes is for this person only
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        with _in_thread(_for_itself(load_or_raise(config_path(env), env), token), env) as port:
            yield Place(f"ws://127.0.0.1:{port}", "127.0.0.1", port, token=token, source="config")
    finally:
        os.umask(mask)


@contextmanager
def _in_thread(loaded: LoadedConfig, env: Mapping[str, str]) -> Iterator[int]:
    """Run the gateway beside the main thread; the port on which it listens."""
    import asyncio

    from openclaw.app import Gateway

    started: Future[int] = Future()
    leaving: Future[Callable[[], object]] = Future()

    async def live() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        async with Gateway(loaded, env, port=0) as gateway:
            leaving.set_result(lambda: loop.call_soon_threadsafe(stop.set))
            started.set_result(gateway.port)
            await stop.wait()

    def run() -> None:
        leave_signals_to_main_thread()
        try:
            asyncio.run(live())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name="embedded-gateway", daemon=True)
    thread.start()
    port = started.result()
    try:
        yield port
    finally:
        leaving.result()()
        thread.join(STOP_S)


def _for_itself(loaded: LoadedConfig, token: str) -> LoadedConfig:
    """The same configuration with a door that only this process can open, and nothing that reaches out.

    Channels and scheduled jobs wait for a gateway that stays; what is to be sent waits in the outbox. The
    file is not followed, so that a change of it does not open what is closed here.
    """
    from msgspec.structs import replace

    config = loaded.config
    auth = replace(config.gateway.auth, mode="token", token=token, password=None)
    gateway = replace(config.gateway, auth=auth, bind="loopback", mode="local")
    channels = {name: replace(channel, enabled=False) for name, channel in config.channels.items()}
    cron = replace(config.cron, enabled=False)
    quiet = replace(config, gateway=gateway, channels=channels, cron=cron)
    return replace(loaded, config=quiet, exists=False)
