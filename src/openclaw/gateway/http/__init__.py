"""HTTP on the gateway's port: health, metrics, `/v1`, tools, history, and the files of the web page.

Every way in is a row of `routes`. A row says who may come; `guards` and `credentials` decide it
before a handler sees the request. Nothing here owns state: handlers work with the gateway's services.
"""
