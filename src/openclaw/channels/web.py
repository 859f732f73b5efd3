"""What connectors share that speak HTTP: a body within bounds, and a failure without its address.

Addresses of platforms may hold a credential, so no error of the HTTP library is shown as it is.
"""

from __future__ import annotations

import aiohttp

_CHUNK = 1 << 16


async def read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """The body; None, and no more of it read, when it is longer than `most`."""
    if (response.content_length or 0) > most:
        return None
    data = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        data += chunk
        if len(data) > most:
            return None
    return bytes(data)


def cause_of(error: BaseException) -> str:
    """What went wrong, without the address."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.os_error.strerror or type(error.os_error).__name__}"
    if isinstance(error, TimeoutError):
        return "it took too long"
    return type(error).__name__
