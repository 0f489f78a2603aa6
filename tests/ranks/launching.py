"""What the cases of ranks.py share: starting processes, ending them, and looking at what they leave."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = """
[[layer]]
op = "conv2d"
name = "conv1"
channels = 16
kernel = 3
padding = 1
stride = 2
[[layer]]
op = "batch_norm"
name = "bn1"
[[layer]]
op = "relu"
[[layer]]
op = "global_average_pool"
[[layer]]
op = "dense"
name = "wide"
features = 128
[[layer]]
op = "dropout"
probability = 0.25
[[layer]]
op = "dense"
name = "fc"
features = "classes"
"""
COMMON = ["--data", "synthetic,train=192,test=50", "--precision", "fp32", "--threads", "1", "--global-batch", "48",
          "--lr", "0.05", "--log-steps", "--no-pin"]


# As launch does it: mpirun of tests that run at once would share one folder, and one that ends removes what another is making.
OF_MPIRUN = tempfile.TemporaryDirectory(prefix="paceline-mpirun-", ignore_cleanup_errors=True)


def mpirun(processes, bind_to="none"):
    line = ["mpirun", "--quiet", "--oversubscribe", "--bind-to", bind_to, "--mca", "orte_tmpdir_base", OF_MPIRUN.name, "-np",
            str(processes)]
    return line + (["--allow-run-as-root"] if os.getuid() == 0 else [])


def stop(job):
    """Ends mpirun and, through it, all that it started; by force what does not go."""
    if job.poll() is not None:
        return
    processes = children_of(job.pid)
    job.terminate()
    try:
        job.wait(timeout=15)
    except subprocess.TimeoutExpired:
        job.kill()
        for process in processes:
            if runs(process):
                os.kill(process, signal.SIGKILL)


def run(words, seconds=120, **more):
    code, out, err = run_once(words, seconds, **more)
    if code == -11 and "mpirun(" in err:  # Open MPI 4.1's mpirun itself, seldom, when its processes end with an error
        print(f"mpirun crashed and is tried once more:\n{err}")
        code, out, err = run_once(words, seconds, **more)
    return code, out, err


def run_once(words, seconds, **more):
    job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    try:
        out, err = job.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        stop(job)
        out, err = job.communicate()
        sys.exit(f"FAILED: not ended after {seconds} s: {words}\n{out}{err}")
    return job.returncode, out, err


def free_port():
    """A port that stays free until somebody listens there: below those that the system gives to connections, which other tests open
    meanwhile, and by this process's number, so that two tests do not take the same one."""
    for attempt in range(1000):
        port = 12000 + (os.getpid() * 7 + free_port.given) % 20000
        free_port.given += 1
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue  # somebody else's
    raise AssertionError("no port from 12000 to 31999 is free")


free_port.given = 0


def places(processes):
    """The environments of processes that no launcher starts."""
    port = free_port()
    return [{**os.environ, "RANK": str(rank), "WORLD_SIZE": str(processes), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(port)} for rank in range(processes)]


def plain(processes, words, seconds=120, **more):
    """Processes with nothing but the environment's word about one another. The codes, and all that was said."""
    jobs = [subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=place, **more) for place in places(processes)]
    try:
        said = [job.communicate(timeout=seconds) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    return [job.returncode for job in jobs], "".join(out for out, _ in said), "".join(err for _, err in said)


def need(args, module, package):
    if not (args.program.parent / module).exists():
        print(f"skipped: the program was built without {module} (Debian: {package})")
        sys.exit(77)


def errors_in(said):
    """The number of sentences of the program but those that only say that others come late, as on a busy machine."""
    return sum("paceline:" in line and "have not met:" not in line and "have waited" not in line for line in said.splitlines())


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def train_options(folder, *more):
    (folder / "model.toml").write_text(MODEL)
    return ["train", "--model", folder / "model.toml", *COMMON, *more]


def result(out):
    record = json.loads((out / "record.json").read_text())
    checkpoint = sorted(out.glob("checkpoint-*.safetensors"))[-1].read_bytes()
    losses = [step["loss"] for step in record["steps"]]
    tests = [(epoch["train_loss"], epoch["test_loss"], epoch["test_accuracy"]) for epoch in record["epochs"]]
    return record, checkpoint, losses, tests


def children(process):
    """Ids of the processes that `process` has started."""
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def children_of(process):
    """Process ids below `process` that run paceline, in the order of their OMPI rank."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            parent = int(re.search(r"\nPPid:\s+(\d+)", (entry / "status").read_text()).group(1))
        except (OSError, AttributeError):
            continue
        ranks = [word for word in environment if word.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if parent == process and ranks:
            found[int(ranks[0].split(b"=")[1])] = int(entry.name)
    return [found[rank] for rank in sorted(found)]


def ranks_of(job, count):
    """Process ids of the `count` ranks of a `paceline launch`, in order. Where they are not there the test fails, with what was said."""
    launched = children(job.pid)
    ranks = children_of(launched[0]) if launched else []
    if len(ranks) != count:
        for process in (*ranks, *launched, job.pid):  # at once, so that nobody holds the ends of what is read
            if runs(process):
                os.kill(process, signal.SIGKILL)
        said = "".join(text or "" for text in job.communicate(timeout=30))
        check(False, f"{len(ranks)} processes run of {count}, exit {job.returncode}: {said}")
    return ranks


def runs(process):
    """Whether a process is there and has not ended: one that nobody has collected yet runs no more."""
    try:
        return not re.search(r"\nState:\s+Z", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return False


def left_of(processes, meanwhile=lambda: None):
    """Those that still run 5 s from now: who started them may have ended a moment before what it has killed is gone."""
    until = time.monotonic() + 5
    while (left := [process for process in processes if runs(process)]) and time.monotonic() < until:
        meanwhile()
        time.sleep(0.05)
    return left


def wait_for_checkpoint(out, seconds=60):
    until = time.monotonic() + seconds
    while not list(out.glob("checkpoint-*.safetensors")) and time.monotonic() < until:
        time.sleep(0.02)


def processor_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
