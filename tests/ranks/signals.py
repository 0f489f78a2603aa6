#!/usr/bin/env python3
"""What becomes of a training when a signal comes to launch, to mpirun or to a rank: outcome, exit code and time, as a table.

    signals.py --program build/release/paceline [--victims launch,mpirun,rank0,rank1] [--signals TERM,INT,HUP,KILL,STOP]

`launch -n 2 --restarts 2` trains; the signal comes in the middle. In every case: the command ends, no process is left, and the
same command with --resume auto then ends with 0 and the undisturbed run's weights. A stopped process (STOP) goes on (CONT)
after some seconds, as with Ctrl-Z and fg.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from again import weights
from launching import MODEL, check, children, children_of, need, runs, wait_for_checkpoint

STEPS = 3000
OPTIONS = ["--data", "synthetic,train=480,test=400", "--precision", "fp32", "--threads", "1", "--global-batch", "48",
           "--lr", "0.05", "--no-pin", "--steps", str(STEPS), "--checkpoint-every", "50steps", "--evaluate-every", "0",
           "--deadline", "6"]
STOPPED_S = 12  # longer than the deadline, within which the others give a silent rank up
ENDS_WITH = {"TERM": 143, "INT": 130, "HUP": 129}  # what launch ends with when it is told so itself


def marked(mark):
    """Processes that run and have `mark` in their environment: all that a command has started, whoever their parent is now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and runs(int(entry.name)):
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def start(args, folder, out, log, *more):
    mark = uuid.uuid4().hex
    words = [args.program, "launch", "-n", "2", "--restarts", "2", "--", "train", "--model", folder / "model.toml", *OPTIONS, *more,
             "--out", out]
    job = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, env={**os.environ, "PACELINE_TEST_MARK": mark})
    return job, mark


def victim_of(job, name):
    (starter,) = children(job.pid)[:1] or (None,)
    if name == "launch":
        return job.pid
    if name == "mpirun":
        return starter
    ranks = children_of(starter) if starter else []
    return ranks[int(name[-1])] if len(ranks) == 2 else None


def wait_for_end(job, mark, seconds):
    """Seconds until the command has ended and until nothing of it runs; None where that takes longer."""
    begin = time.monotonic()
    ended = None
    while time.monotonic() - begin < seconds:
        if ended is None and job.poll() is not None:
            ended = time.monotonic() - begin
        if ended is not None and not marked(mark):
            return ended, time.monotonic() - begin
        time.sleep(0.02)
    return ended, None


def one(args, folder, name, word, expected):
    out = folder / f"{name}-{word}"
    with open(folder / f"{name}-{word}.log", "w+") as log:
        job, mark = start(args, folder, out, log)
        try:
            wait_for_checkpoint(out)
            time.sleep(0.7)
            victim = victim_of(job, name)
            check(victim is not None and job.poll() is None, f"{name}: the run was over before the signal: {log.name}")
            os.kill(victim, getattr(signal, "SIG" + word))
            if word == "STOP":
                time.sleep(STOPPED_S)
                if runs(victim):
                    os.kill(victim, signal.SIGCONT)
            ended, gone = wait_for_end(job, mark, 120)
            log.flush()
            said = Path(log.name).read_text()
            check(ended is not None, f"{name} {word}: launch has not ended after 120 s: {said}")
            check(gone is not None, f"{name} {word}: processes {marked(mark)} are left: {said}")
        finally:
            for process in marked(mark):
                os.kill(process, signal.SIGKILL)
        code = job.returncode
        if name == "launch" and word in ENDS_WITH:
            check(code == ENDS_WITH[word], f"launch {word}: exit {code}: {said}")
        complete = code == 0
        if complete:
            check(weights(out) == expected, f"{name} {word}: other weights: {said}")
        restarts = said.count("the next try begins")
        again, mark = start(args, folder, out, log, "--resume", "auto")
        check(again.wait(timeout=240) == 0, f"{name} {word}: the same command again ends with {again.returncode}: {Path(log.name).read_text()}")
        check(weights(out) == expected, f"{name} {word}: other weights after going on")
        check(not marked(mark), f"{name} {word}: processes are left after going on")
    outcome = ("complete, the undisturbed weights" if complete else "ended; going on gave the undisturbed weights")
    print(f"| {name} | {word} | {outcome} | {restarts} | {code} | {ended:.1f} | {gone:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--victims", default="launch,mpirun,rank0,rank1")
    parser.add_argument("--signals", default="TERM,INT,HUP,KILL,STOP")
    args = parser.parse_args()
    args.program = args.program.resolve()
    need(args, "paceline_mpi.so", "libopenmpi-dev")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.toml").write_text(MODEL)
        whole = folder / "whole"
        with open(folder / "whole.log", "w+") as log:
            begin = time.monotonic()
            job, _ = start(args, folder, whole, log)
            check(job.wait(timeout=300) == 0, f"undisturbed: exit {job.returncode}: {Path(log.name).read_text()}")
        expected = weights(whole)
        print(f"undisturbed: {time.monotonic() - begin:.1f} s for {STEPS} updates\n")
        print("| the signal comes to | signal | outcome | restarts | exit code | ended after s | nothing left after s |")
        print("|---|---|---|---|---|---|---|")
        for victim in args.victims.split(","):
            for word in args.signals.split(","):
                one(args, folder, victim, word, expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
