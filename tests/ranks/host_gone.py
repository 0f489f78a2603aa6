#!/usr/bin/env python3
"""`paceline launch --hosts a:2,b:2 --restarts 1` when host b goes in the middle: power lost, nothing said.

    host_gone.py --program build/release/paceline

The hosts are network namespaces (hosts.py), mpirun reaches b through a launch agent in place of ssh. Once there is a checkpoint
b's link is cut, then all its processes are killed, so that not one goodbye gets through; from then on the agent fails as ssh
does. Twice: the connection that started b's processes is as silent as the link (mpirun then waits for its daemon), and it ends.
What is left must notice within the deadline, end, and go on with the 2 processes of a to the weights of an undisturbed
run (--shard: bit for bit); the record must say what was lost, when it was known and when the run was there again. Ends with 77
and why where namespaces are not allowed.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hosts import NotAllowed, TwoHosts, sudo
from launching import check, result, run, train_options, wait_for_checkpoint

AGENT = """#!/bin/sh
# mpirun's launch agent: AGENT [options] HOST COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
if [ -e "%s/$host.gone" ]; then echo "connect to host $host: No route to host" >&2; exit 255; fi
ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
code=$?
# A link that is cut ends nothing at this side.
if [ -e "%s/$host.gone" ] && [ -e "%s/unnoticed" ]; then exec sleep 300; fi
exit $code
"""
DEADLINE = 8


def pids_in(namespace):
    listed = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def kill_all(processes):
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass  # with its parent


def lose_power(hosts, folder):
    name = hosts.names[1]
    (folder / f"{name}.gone").touch()
    sudo("ip", "-n", name, "link", "set", hosts.other, "down")
    kill_all(pids_in(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    args = parser.parse_args()
    program = args.program.resolve()
    if not shutil.which("mpirun") or not (program.parent / "paceline_mpi.so").exists():
        print("skipped: there is no mpirun, or the program was built without MPI (Debian: openmpi-bin, libopenmpi-dev)")
        sys.exit(77)
    try:
        for unnoticed in (True, False):
            with TwoHosts() as hosts, tempfile.TemporaryDirectory(prefix="paceline-gone-") as name:
                if unnoticed:
                    (Path(name) / "unnoticed").touch()
                lose_a_host(hosts, program, Path(name), unnoticed)
    except (NotAllowed, FileNotFoundError) as refused:
        print(f"skipped: two hosts of network namespaces cannot be made here: {refused}")
        sys.exit(77)


def lose_a_host(hosts, program, folder, unnoticed):
    a, b = hosts.names
    agent = folder / "agent"
    agent.write_text(AGENT % (folder, folder, folder))
    agent.chmod(0o755)
    os.environ["PACELINE_CACHE"] = str(folder)
    options = train_options(folder, "--steps", "1200", "--evaluate-every", "0", "--shard", "6")
    whole, out = folder / "whole", folder / "out"
    code, text, err = run([program, *options, "--out", whole])
    check(code == 0, f"one process: exit {code}\n{text}{err}")
    launch = [program, "launch", "--hosts", f"{a}:2,{b}:2", "--restarts", "1", "--", *options, "--deadline", DEADLINE, "--out", out]
    job = subprocess.Popen(["ip", "netns", "exec", a, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', a,
                            *map(str, launch)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "OMPI_MCA_plm_rsh_agent": str(agent), "OMPI_MCA_hwloc_base_binding_policy": "none"})
    try:
        wait_for_checkpoint(out)
        there = len(pids_in(b))
        check(job.poll() is None and there >= 2, f"{there} processes on {b}; launch: {job.poll()}")
        begin = time.monotonic()
        lose_power(hosts, folder)
        text, err = job.communicate(timeout=240)
        seconds = time.monotonic() - begin
    finally:
        job.kill()
        kill_all(pids_in(a) + pids_in(b))
    check(job.returncode == 0, f"exit {job.returncode}\n{text}{err}")
    check(f"only {a}:2 answer: the run continues with fewer processes" in err, f"fewer processes, and it was said: {err}")
    record, checkpoint = result(out)[:2]
    check(record["workers"] == 2 and record["communication"]["processes"] == 2, f"workers {record['workers']}")
    check(len(record["restarts"]) == 1, f"{record['restarts']}")
    lost = record["restarts"][0]
    check(lost["workers"] == 4, f"{lost}")
    if unnoticed:  # else mpirun ends all at once, whoever is lost
        check(f"on host {b}" in lost["reason"] and f"on host {b}" in err and "is lost" in err, f"who was lost: {lost} {err}")
        check("mpirun still waits" in err, f"mpirun was ended: {err}")
        check(0 < lost["detection_s"] <= DEADLINE + 2, f"detection: {lost}")
        check(lost["lost_samples"] == 48 * lost["lost_updates"] >= 0, f"samples: {lost}")
    check(0 < lost["rebuild_s"] < seconds, f"rebuild: {lost}")
    check(result(whole)[1] == checkpoint, "the last checkpoint has other bytes than the undisturbed run's")
    print(f"host {b} lost, connection {'silent' if unnoticed else 'ended'}: {lost}, all done after {seconds:.1f} s: the undisturbed "
          "run's bytes")


if __name__ == "__main__":
    main()
