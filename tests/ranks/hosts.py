#!/usr/bin/env python3
"""Two hosts that are network namespaces, joined by a veth pair; what one of them sends is limited by tbf.

    hosts.py --program build/release/paceline [--rate MBIT] [--out FILE.json]

Each namespace has a host name of its own, so nothing is shared but the link: no memory, no loopback. `scale` runs across both,
started by hand (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT). An all-reduce of X bytes over two processes sends X through the
limited side, so a step's communication takes X / rate, and what of it was not overlapped must be exposed: within 15 %. The rate is
low, half a second a step: what a busy machine adds to it, some ten milliseconds, is no fault of the ledger.
Without the limit nearly all of that is gone. Before that `launch` starts a training on both by mpirun, whose ssh is a script, and a
message from the other host is printed by launch. Ends with 77 and why where namespaces, veth or tbf are not allowed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NET = "10.213.77"


class NotAllowed(Exception):
    pass


def sudo(*words):
    """A step of the set-up, which may be refused."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise NotAllowed(f"'{' '.join(map(str, words))}': {done.stderr.strip() or done.returncode}")


class TwoHosts:
    def __init__(self):
        self.names = [f"paceline{os.getpid()}{letter}" for letter in "ab"]

    def __enter__(self):
        try:
            for name in self.names:
                sudo("ip", "netns", "add", name)
            a, b = self.names
            ends = [f"pl{os.getpid() % 100000}{letter}" for letter in "ab"]
            sudo("ip", "link", "add", ends[0], "netns", a, "type", "veth", "peer", "name", ends[1], "netns", b)
            for number, (name, end) in enumerate(zip(self.names, ends), 1):
                sudo("ip", "-n", name, "addr", "add", f"{NET}.{number}/24", "dev", end)
                sudo("ip", "-n", name, "link", "set", "lo", "up")
                sudo("ip", "-n", name, "link", "set", end, "up")
            self.limited, self.other = ends
            sudo("ip", "netns", "exec", a, "unshare", "--uts", "hostname", a)
            return self
        except (NotAllowed, FileNotFoundError):
            self.__exit__()
            raise

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def limit(self, mbit):
        sudo("tc", "-n", self.names[0], "qdisc", "replace", "dev", self.limited, "root", "tbf", "rate", f"{mbit}mbit",
             "burst", "128kb", "limit", "32mb")

    def run(self, words, port, seconds=200, each=1):
        """`words` on both hosts, in `each` processes there. Ends the test when one of them fails."""
        jobs = []
        for rank in range(2 * each):
            name = self.names[rank // each]
            script = 'hostname "$0" && exec "$@"'
            environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(2 * each), "LOCAL_RANK": str(rank % each),
                           "MASTER_ADDR": f"{NET}.1", "MASTER_PORT": str(port)}
            jobs.append(subprocess.Popen(["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", script, name,
                                          *map(str, words)], env=environment, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True))
        try:
            said = [job.communicate(timeout=seconds) for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        if any(job.returncode != 0 for job in jobs):
            sys.exit(f"FAILED: exit {[job.returncode for job in jobs]}: {said}")


def arguments(description):
    """What a test of two hosts is called with, and its program. Ends the test where that has no gloo."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--rate", type=float, default=100, help="Mbit/s of what the first host sends")
    parser.add_argument("--out", type=Path, help="figures as JSON")
    args = parser.parse_args()
    program = args.program.resolve()
    if not (program.parent / "paceline_gloo.so").exists():
        print("skipped: the program was built without paceline_gloo.so (Debian: libgloo-dev)")
        sys.exit(77)
    return args, program


AGENT = f"""#!/bin/sh
name=$FIRST
[ "$1" = {NET}.2 ] && name=$SECOND
shift
exec ip netns exec "$name" unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$name" "$*"
"""
# On the other host, with the number of a process there: says a line to launch, as that process would.
SAY = """
import socket, struct, sys
variables = dict(one.split("=", 1) for one in open(f"/proc/{sys.argv[1]}/environ").read().split("\\0") if "=" in one)
token, port, host, *addresses = variables["PACELINE_EAR"].split()
for address in (socket.inet_ntoa(struct.pack("=I", int(one))) for one in addresses if one != "0"):
    with socket.create_connection((address, int(port)), timeout=5) as launch:
        launch.sendall(f"{token} a word from the other host\\n".encode())
        if launch.makefile().readline() == "said\\n":
            sys.exit(0)
sys.exit("nobody answered")
"""


def launched(hosts, program, folder):
    """launch of a training on both hosts: a process of the second one is heard by launch on the first."""
    if not shutil.which("mpirun") or not (program.parent / "paceline_mpi.so").exists():
        print("launch is left out: no mpirun, or the program was built without MPI")
        return
    agent = folder / "agent"  # one called ssh would get an option more
    agent.write_text(AGENT)
    agent.chmod(0o755)
    a, b = hosts.names
    words = [program, "launch", "--hosts", f"{NET}.1,{NET}.2", "--", "train", "--model", "mnist-cnn", "--data", "synthetic,train=960,test=50",
             "--precision", "fp32", "--threads", "1", "--no-pin", "--epochs", "10000", "--out", folder / "launched"]
    job = subprocess.Popen(["ip", "netns", "exec", a, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', a, *map(str, words)],
                           env={**os.environ, "FIRST": a, "SECOND": b, "OMPI_MCA_plm_rsh_agent": str(agent)},
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        process, until = None, time.monotonic() + 60
        while not process and job.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
            of_b = subprocess.run(["ip", "netns", "pids", b], capture_output=True, text=True).stdout.split()
            process = next((one for one in of_b if Path(f"/proc/{one}/exe").resolve() == program), None)
        heard = subprocess.run(["ip", "netns", "exec", b, sys.executable, "-c", SAY, str(process)], capture_output=True, text=True)
        job.terminate()
        said = job.communicate(timeout=100)[1]
    finally:
        job.kill()
    if heard.returncode != 0 or "paceline: a word from the other host\n" not in said:
        sys.exit(f"FAILED: launch does not hear process {process} of the other host: {heard.stderr}{said}")
    print("launch on two hosts hears a process of the other one")


def of_step(record):
    """Seconds of one step: exposed communication and overlapped, the limited rank's; and the gradient's bytes."""
    rank = record["ranks"][0]
    steps = len(rank["step_s"])
    exposed = (rank["phases_s"]["exposed transfer"] + rank["phases_s"]["exposed wait"]) / steps
    overlapped = max(0.0, rank["communication_s"] / steps - exposed)
    return exposed, overlapped, record["communication"]["gradient_bytes"]


def main():
    args, program = arguments(__doc__)
    try:
        with TwoHosts() as hosts, tempfile.TemporaryDirectory(prefix="paceline-hosts-") as folder:
            os.environ["PACELINE_CACHE"] = folder
            launched(hosts, program, Path(folder))
            words = [program, "scale", "--model", "mnist-cnn", "--data", "synthetic,train=960,test=50", "--precision", "fp32",
                     "--threads", "1", "--no-pin", "--workers", "1,2", "--batches", "8", "--repeats", "3", "--window-steps",
                     "12", "--window-seconds", "99", "--warmup-steps", "2", "--measure-again", "0"]
            results = {}
            for name in ("unlimited", "limited"):
                if name == "limited":
                    hosts.limit(args.rate)
                out = Path(folder) / name
                hosts.run([*words, "--out", out], 29531 if name == "limited" else 29532)
                records = [json.loads((out / f"records/scale-weak-w2-b8-r{repeat}.json").read_text()) for repeat in range(3)]
                if any(record["status"] != "complete" for record in records):
                    sys.exit(f"FAILED: {[record['reason'] for record in records]}")
                results[name] = [of_step(record) for record in records]
    except (NotAllowed, FileNotFoundError) as refused:
        print(f"skipped: two hosts of network namespaces cannot be made here: {refused}")
        sys.exit(77)
    bytes_per_s = args.rate * 1e6 / 8
    gradient = results["limited"][0][2]
    exposed, overlapped = (statistics.median(one[i] for one in results["limited"]) for i in (0, 1))
    free = statistics.median(one[0] for one in results["unlimited"])
    predicted = gradient / bytes_per_s - overlapped
    print(f"gradient {gradient / 1e6:.2f} MB, link {args.rate:g} Mbit/s: {1e3 * gradient / bytes_per_s:.1f} ms a step, of which "
          f"{1e3 * overlapped:.1f} ms overlapped: {1e3 * predicted:.1f} ms are predicted to be exposed, {1e3 * exposed:.1f} ms "
          f"were ({100 * (exposed / predicted - 1):+.1f} %); without the limit {1e3 * free:.1f} ms")
    if args.out:
        args.out.write_text(json.dumps({"rate_mbit": args.rate, "gradient_bytes": gradient, "predicted_s": predicted,
                                        "results": results}, indent=1) + "\n")
    if abs(exposed / predicted - 1) > 0.15:
        sys.exit("FAILED: exposed communication is not within 15 % of what the limit predicts")
    if free > 0.4 * exposed:
        sys.exit("FAILED: the communication was slow without the limit too: this says nothing about the limit")


if __name__ == "__main__":
    main()
