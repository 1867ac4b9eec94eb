"""Serves a coordinator over HTTP: POST takes a report, and GET returns the status.

A job may have thousands of replicas, which keep their connections, so one thread serves all.
"""

import asyncio
import json
import socket
import threading
import urllib.parse


def serve(coordinator, port):
    """Serve a coordinator in a thread. Raise an OSError if the port is taken."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit this, so connections from lost nodes end.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    listener.bind(("", port))
    listener.listen(4096)

    async def work():
        await asyncio.start_server(lambda *streams: converse(coordinator, *streams), sock=listener, backlog=4096)
        await asyncio.Event().wait()

    loop = asyncio.new_event_loop()

    def run():
        asyncio.set_event_loop(loop)
        loop.run_until_complete(work())

    threading.Thread(target=run, daemon=True).start()


async def converse(coordinator, reader, writer):
    """Answer the requests of one connection."""
    try:
        while await answer_one(coordinator, reader, writer):
            pass
    except (OSError, ValueError, KeyError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        # The peer has closed the connection, or does not speak HTTP.
        pass
    finally:
        writer.close()


async def answer_one(coordinator, reader, writer):
    """Answer one request, and report whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, version = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    stays = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if method == "POST":
        text = json.dumps(coordinator.report(json.loads(body.decode())))
    else:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(target).query)
        text = coordinator.status(query.get("run", [""])[0]) + "\n"
    kept = "keep-alive" if stays else "close"
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text.encode())}\r\nConnection: {kept}\r\n\r\n{text}".encode())
    await writer.drain()
    return stays
