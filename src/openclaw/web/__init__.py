"""The web page of the gateway: plain files under `static`, served by `openclaw.gateway.http`.

No code of Python belongs here. A page talks to the gateway that served it, and to nobody else.
"""
