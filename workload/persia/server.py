"""Serves a coordinator over HTTP: POST takes a report, with the token of the job, and GET returns the status, as JSON.

A job may have thousands of replicas, which keep their connections, so one thread serves all.
"""

import asyncio
import contextlib
import hmac
import json
import resource
import socket
import threading
import urllib.parse

from roster import NotWhole

# The longest report, in bytes, and how long its bytes may take, in seconds.
LONGEST_BODY, BODY_SECONDS = 64 * 1024, 10

# How many connections are closed at once, to call the replicas, ten times a second.
CALLS = 100

# How many files a coordinator opens besides the connections of replicas.
OWN_FILES = 64


def open_enough(replicas):
    """Let this process open a file for the connection of each replica. Return why it cannot, or ""."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY or most >= replicas + OWN_FILES:
        return ""
    return (
        f"nn-worker 0 may open {most} files, and {replicas} replicas need {replicas + OWN_FILES}: "
        "raise the limit of its node's container runtime"
    )


def serve(coordinator, port, token):
    """Serve a coordinator in a thread. Raise an OSError if the port is taken."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit this, so connections from lost nodes end.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    listener.bind(("", port))
    listener.listen(4096)

    async def work():
        loop, writers = asyncio.get_running_loop(), set()
        coordinator.call = lambda: asyncio.run_coroutine_threadsafe(call(writers), loop)
        await asyncio.start_server(lambda *streams: converse(coordinator, token, writers, *streams), sock=listener, backlog=4096)
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(work()), daemon=True).start()


async def call(writers):
    """Close the connections, so that replicas report at once (see link.py), but not all in the same moment."""
    for number, writer in enumerate(list(writers), 1):
        writer.close()
        if number % CALLS == 0:
            await asyncio.sleep(0.1)


async def converse(coordinator, token, writers, reader, writer):
    """Answer the requests of one connection, which is one of those of the writers."""
    writers.add(writer)
    # The peer may close the connection, be too slow, or not speak HTTP.
    ends = contextlib.suppress(OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
    with contextlib.ExitStack() as stack, contextlib.closing(writer), ends:
        stack.callback(writers.discard, writer)
        while await answer_one(coordinator, token, reader, writer):
            pass


async def answer_one(coordinator, token, reader, writer):
    """Answer one request, and report whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, version = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    known = hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {token}".encode())
    length = int(headers.get("content-length", "0"))
    stays = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if method == "POST" and not known:
        status, text, stays = "401 Unauthorized", "the request does not have the token of the job", False
    elif length > LONGEST_BODY:
        status, text, stays = "413 Payload Too Large", f"a report has at most {LONGEST_BODY} bytes", False
    else:
        body = await asyncio.wait_for(reader.readexactly(length), BODY_SECONDS)
        try:
            status, text = answer(coordinator, method, target, known, body)
        except Exception as error:
            # The peer is not to blame, and asks again.
            status, text = "500 Internal Server Error", repr(error)
            coordinator.log(f"{method} {target} is not answered: {error!r}")
    kept = "keep-alive" if stays else "close"
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(text.encode())}\r\nConnection: {kept}\r\n\r\n{text}".encode())
    await writer.drain()
    return stays


def answer(coordinator, method, target, known, body):
    """Return the status and the text of the answer to a request, which may have the token."""
    if method != "POST":
        parts = urllib.parse.urlsplit(target)
        # The completion of a release before this answer asks elsewhere, and does not know the end from it.
        known = known and parts.path == "/answer"
        return "200 OK", json.dumps(coordinator.status(urllib.parse.parse_qs(parts.query).get("run", [""])[0], known)) + "\n"
    try:
        return "200 OK", json.dumps(coordinator.report(json.loads(body.decode())))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError, NotWhole) as error:
        return "400 Bad Request", str(error)
