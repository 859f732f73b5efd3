"""dashboard.link and dashboard.signout: let a browser in without showing it the secret, and out again."""

from __future__ import annotations

from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params_dashboard as params
from openclaw.protocol import results_dashboard as results


async def make_link(
    services: GatewayServices, _caller: Caller, _asked: params.DashboardLinkParams
) -> results.DashboardLink:
    link = services.signins.make_link()
    return results.DashboardLink(path=f"/signin/{link.code}", expires_at=link.expires_at_ms)


async def sign_out(
    services: GatewayServices, _caller: Caller, _asked: params.DashboardSignoutParams
) -> results.DashboardSignedOut:
    """End every sign-in; the sockets that live by them are closed."""
    ended = services.signins.end_all()
    await services.signins.keep()
    return results.DashboardSignedOut(ok=True, ended=ended)
