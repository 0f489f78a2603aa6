#!/usr/bin/python3
"""What `paceline serve` costs a training: processor time of the server while clients follow it by server-sent events.

A training runs in a folder that a server serves; so many clients follow it from its first event on. Said are the processor
time of both, the server's share of it, and how many events the clients got. Nothing is asserted: the aim is a share under 1 %.

usage: serve_cost.py [--program build/release/paceline] [--clients 50] [--seconds 30] [--model resnet8-cifar] [--batch 128]

Needs nothing but Python. The clients are this program: their time counts for neither.
"""
import argparse
import os
import re
import selectors
import socket
import subprocess
import tempfile
import time

from record import ROOT

TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(process):
    """User and system time of `process`, all of its threads."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def follow(port, clients):
    """Sockets that have asked for the run's events."""
    sockets = []
    for _ in range(clients):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(b"GET /events?run=run HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        one.setblocking(False)
        sockets.append(one)
    return sockets


def listen(sockets, seconds):
    """Bytes and events that came within `seconds`."""
    selector, size, events = selectors.DefaultSelector(), 0, 0
    for one in sockets:
        selector.register(one, selectors.EVENT_READ)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for key, _ in selector.select(timeout=0.5):
            data = key.fileobj.recv(65536)
            if not data:
                selector.unregister(key.fileobj)
            size += len(data)
            events += data.count(b"\nid: ") + data.startswith(b"id: ")
    return size, events


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/paceline"))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--model", default="resnet8-cifar")
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        training = subprocess.Popen(
            [args.program, "train", "--model", args.model, "--data", "synthetic", "--global-batch", str(args.batch), "--epochs",
             "1000", "--evaluate-every", "0", "--out", os.path.join(folder, "run")], stdout=subprocess.DEVNULL)
        server = subprocess.Popen([args.program, "serve", folder, "--port", "0", "--no-token"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))
            while not os.path.exists(os.path.join(folder, "run", "events.jsonl")):
                time.sleep(0.1)
            sockets = follow(port, args.clients)
            listen(sockets, 3)  # the begin is not what lasts
            before = processor_seconds(training.pid), processor_seconds(server.pid)
            size, events = listen(sockets, args.seconds)
            trained = processor_seconds(training.pid) - before[0]
            served = processor_seconds(server.pid) - before[1]
        finally:
            for process in (training, server):
                process.terminate()
                process.wait()
    print(f"{args.clients} clients for {args.seconds:.0f} s: {events} events, {size / 1e3:.0f} kB; training {trained:.2f} s of processor "
          f"time, server {served:.2f} s: {100 * served / trained:.2f} % of the training's (aim: under 1 %)")


if __name__ == "__main__":
    main()
