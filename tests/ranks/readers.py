"""Cases of ranks.py: the reader of the output reads nothing, stops its terminal, or is gone; and whole processes pause."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time

from again import weights
from launching import check, need, places, processor_seconds, run, train_options, wait_for_checkpoint

STEPS = ("--epochs", "600", "--evaluate-every", "100", "--checkpoint-every", "200epochs", "--deadline", "4")


def unread(args, folder):
    """Output that nobody reads until the run is over, longer than its deadline: the usual bytes, and no last line is missing.
    Each form of start with one reader; with PACELINE_LONG=1 with every one."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    options = train_options(folder, *STEPS)
    whole = folder / "whole"
    code, text, err = run([args.program, *options, "--workers", "2", "--out", whole])
    check(code == 0, f"exit {code}: {err}")
    alone = [args.program, *options, "--workers", "2"]
    launched = [args.program, "launch", "--by", "here", "-n", "2", "--", *options]
    mpi = [args.program, "launch", "-n", "2", "--", *options]
    readers = (late, closed, stopped_terminal)
    is_long = bool(os.environ.get("PACELINE_LONG"))
    for name, words, one in (("one process", alone, late), ("launch", launched, closed), ("mpirun", mpi, stopped_terminal)):
        for reader in readers if is_long else (one,):
            out = folder / f"{name}-{reader.__name__}"
            code, text = reader([str(word) for word in [*words, "--out", out]])
            check(code == 0, f"{name}, {reader.__name__}: exit {code}: {text[-2000:]}")
            if name == "one process":  # as many workers in it
                check(weights(out) == weights(whole), f"{name}, {reader.__name__}: other weights")
            check(json.loads((out / "record.json").read_text())["status"] == "complete", f"{name}: {out}")
            if reader is not closed:
                check("epoch 1 " in text and "epoch 600 " in text and "checkpoint: " in text,
                      f"{name}, {reader.__name__}: {text[:500]} ... {text[-2000:]}")
            print(f"{name}, {reader.__name__}: ended with 0, {len(text)} bytes were read")


def late(words):
    """Whoever reads begins when the run is over, as `less` does whose user looks at the first page."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    job = subprocess.Popen(words, stdout=writer, stderr=writer)
    os.close(writer)
    code = job.wait(timeout=120)
    with os.fdopen(reader, errors="replace") as pipe:
        return code, pipe.read()


def closed(words):
    """`| head -1`."""
    reader, writer = os.pipe()
    job = subprocess.Popen(words, stdout=writer, stderr=writer)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    return job.wait(timeout=120), ""


def stopped_terminal(words):
    """Ctrl-S soon after the start, Ctrl-Q after the end."""
    master, terminal = pty.openpty()
    job = subprocess.Popen(words, stdout=terminal, stderr=terminal)
    said = os.read(master, 65536)
    termios.tcflow(terminal, termios.TCOOFF)
    code = job.wait(timeout=120)
    termios.tcflow(terminal, termios.TCOON)
    os.set_blocking(master, False)
    until = time.monotonic() + 10
    while time.monotonic() < until and b"checkpoint: " not in said:
        try:
            said += os.read(master, 65536)
        except BlockingIOError:
            time.sleep(0.02)
    os.close(terminal)
    os.close(master)
    return code, said.decode(errors="replace")


def suspended(args, folder):
    """A run that is stopped as a whole, for longer than its deadline, and goes on: the usual bytes."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    options = train_options(folder, "--steps", "2500", "--evaluate-every", "0", "--checkpoint-every", "50steps", "--shard", "6",
                            "--deadline", "4")
    whole = folder / "whole"
    code, text, err = run([args.program, *options, "--workers", "2", "--out", whole])
    check(code == 0, f"exit {code}: {err}")
    for name, environments in (("one process", [None]), ("two processes", places(2))):
        out = folder / name
        words = [args.program, *options, *(["--workers", "2"] if len(environments) == 1 else []), "--out", out]
        jobs = [subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=place)
                for place in environments]
        try:
            wait_for_checkpoint(out)
            for job in jobs:
                os.kill(job.pid, signal.SIGSTOP)
            time.sleep(7)
            check(all(job.poll() is None for job in jobs), f"{name}: the run was over before it was stopped")
            for job in jobs:
                os.kill(job.pid, signal.SIGCONT)
            said = "".join(job.communicate(timeout=120)[0] for job in jobs)
        finally:
            for job in jobs:
                job.kill()
        codes = [job.returncode for job in jobs]
        check(codes == [0] * len(jobs), f"{name}: exit {codes}: {said[-2000:]}")
        check(weights(out) == weights(whole), f"{name}: other weights")
        check("stood still" in "".join(json.loads((out / "record.json").read_text())["notes"]), f"{name}: the record does not say it")
        print(f"{name}: stopped for 7 s with a deadline of 4 s, and complete")


def paused(args, folder):
    """A process that is stopped in the midst of a window and goes on: the window is marked and measured again, and the answer
    does not hold it."""
    out = folder / "sweep"
    train_options(folder)
    words = [args.program, "sweep", "--model", folder / "model.toml", "--data", "synthetic,train=192,test=50", "--threads", "1",
             "--no-pin", "--batches", "16,48", "--workers", "1", "--repeats", "2", "--window-steps", "4000", "--out", out]
    job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    events = out / "events.jsonl"
    try:
        begun = 0
        until = time.monotonic() + 60
        while begun < 2 and time.monotonic() < until:  # the second window has begun
            time.sleep(0.05)
            begun = events.read_text().count('"cell_begun"') if events.exists() else 0
        before = processor_seconds(job.pid)
        while processor_seconds(job.pid) < before + 1 and time.monotonic() < until:  # it computes
            time.sleep(0.05)
        os.kill(job.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(job.pid, signal.SIGCONT)
        said = job.communicate(timeout=240)[0]
    finally:
        job.kill()
    check(job.returncode == 0, f"exit {job.returncode}: {said[-2000:]}")
    records = [json.loads(path.read_text()) for path in (out / "records").glob("*.json")]
    still = [one for one in records if one["window"].get("paused_s", 0) > 2.5]
    check(len(still) == 1, f"windows that stood still: {[(one['id'], one['window'].get('paused_s')) for one in records]}")
    check(any("repeated: the run stood still" in note for one in records for note in one["notes"]), f"measured again: {said[-3000:]}")
    report = (out / "report.md").read_text()
    check("stood still" in report and "stood still" in said, "the report does not say it")
    print(f"{still[0]['id']}: {still[0]['window']['paused_s']:.2f} s, measured again")
