"""`openclaw dashboard`: a one-time link to the gateway's web page, opened in a browser.

The link carries a code that is good once and for a minute, never the gateway's secret.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, Place, find_place
from openclaw.cli.render import print_json, say
from openclaw.domain.terminaltext import counted, printable
from openclaw.protocol.scopes import ADMIN

Json = dict[str, Any]


@click.command()
@click.option("--no-open", is_flag=True, help="Only print the link.")
@click.option("--sign-out", is_flag=True, help="Sign every browser out instead.")
@gateway_options
@timeout_option
@json_option
def dashboard(flags: Flags, no_open: bool, sign_out: bool, timeout_s: float, as_json: bool) -> None:
    """Open the gateway's web page, signed in.

    The link works once, within a minute. The browser stays signed in for a week, also when the
    gateway restarts; `--sign-out` ends it.

    \b
    Examples:
      openclaw dashboard
      openclaw dashboard --no-open
      openclaw dashboard --sign-out
    """
    place = find_place(flags, os.environ)
    method = "dashboard.signout" if sign_out else "dashboard.link"
    with GatewayClient(place, [ADMIN], connect_timeout_s=timeout_s) as client:
        answer: Json = client.call(method, {}, timeout_s)
    if sign_out:
        print_json(answer) if as_json else say(f"{counted(int(answer['ended']), 'browser')} signed out.")
        return
    url = page_url(place) + str(answer["path"])
    if as_json:
        print_json({"ok": True, "url": url, "expiresAt": answer["expiresAt"]})
        return
    left_s = max(0, int(answer["expiresAt"]) // 1000 - int(time.time()))
    say(f"Open this link within {left_s} seconds; it works once:")
    say(f"  {printable(url)}")
    if not no_open and not open_browser(url):
        say("No browser could be opened here.")


def page_url(place: Place) -> str:
    """Where the page of a gateway is: its address for sockets, as an address for pages."""
    scheme = "https" if urlsplit(place.url).scheme == "wss" else "http"
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{scheme}://{host}:{place.port}"


def open_browser(url: str) -> bool:
    """Open a graphical browser, if there is one; a browser in the terminal would cover what was said."""
    import webbrowser

    has_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform.startswith("linux") and not has_screen:
        return False
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
