"""The child's end of a pipe: makes a host, and does what it is told.

Run as ``python -m bench_lib.child``. Requests and answers are pickles with their
length in front, on what were standard input and output when the process began;
whatever a library prints goes to standard error.
"""

from __future__ import annotations

import importlib
import os
import pickle
import struct
import sys
import traceback
from typing import Any, BinaryIO

LENGTH = struct.Struct("<Q")


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message.

    Raises:
        EOFError: the other end is gone.
    """
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError("the other end of the pipe is closed")
    return pickle.loads(stream.read(LENGTH.unpack(head)[0]))


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until the other end closes the pipe.

    A request is (method, arguments); the first is ("module:Class", arguments) and
    makes the host. An answer is (True, result) or (False, text of the error).
    """
    host: Any = None
    while True:
        try:
            method, arguments = receive(source)
        except EOFError:
            return
        try:
            if host is None:
                module, name = method.split(":")
                host = getattr(importlib.import_module(module), name)(*arguments)
                answer = None
            else:
                answer = getattr(host, method)(*arguments)
        except Exception as error:
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            send(sink, (False, text))
        else:
            send(sink, (True, answer))


def main() -> None:
    """Keep the pipe's ends for messages, and give libraries standard error to print to."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    serve(source, sink)
    # Worker threads of some libraries never end; nothing here needs them to.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
