#!/usr/bin/env python3
"""Real mpirun with 1 to 4 processes on this machine, oversubscribed where it has fewer cores.

    ranks.py CASE --program build/release/paceline --runner build/release/.../ranks_run [--processes P]

Cases:
  collectives   every collective right for counts 0, 1, prime and large, with 1 and 2 workers a process
  train         the checkpoint and all losses are those of as many workers in one process, byte for byte
  resume        a training stopped and gone on with ends with the bytes of one that was not
  timeline      --timeline: all ranks on one time axis
  lost          a process killed while it trains: all end at once, and one sentence names it
  comm          paceline comm through paceline launch: every collective right, and a fit
  restarts      paceline launch --restarts: the run that is lost twice ends with the undisturbed run's weights
  doctor        paceline doctor in a launch: one table of the processes
  bf16          --gradients-as bf16: half the bytes, the same bits on all ranks
  failed        an error of one process: one sentence, its exit code, nobody left
Ends with 77 and why where mpirun or the module is not there.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
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
op = "dropout"
probability = 0.25
[[layer]]
op = "dense"
name = "fc"
features = "classes"
"""
COMMON = ["--data", "synthetic,train=192,test=50", "--precision", "fp32", "--threads", "1", "--global-batch", "48",
          "--lr", "0.05", "--log-steps", "--no-pin"]


def mpirun(processes):
    line = ["mpirun", "--quiet", "--oversubscribe", "--bind-to", "none", "-np", str(processes)]
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


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def collectives(args, folder):
    for local in (1, 2):
        code, out, err = run(mpirun(args.processes) + [args.runner, args.program.parent, local])
        check(code == 0, f"{local} workers a process: exit {code}\n{out}{err}")
        print(out.strip())


def train_options(folder, *more):
    (folder / "model.toml").write_text(MODEL)
    return ["train", "--model", folder / "model.toml", *COMMON, *more]


def result(out):
    record = json.loads((out / "record.json").read_text())
    checkpoint = sorted(out.glob("checkpoint-*.safetensors"))[-1].read_bytes()
    losses = [step["loss"] for step in record["steps"]]
    tests = [(epoch["train_loss"], epoch["test_loss"], epoch["test_accuracy"]) for epoch in record["epochs"]]
    return record, checkpoint, losses, tests


def train(args, folder):
    """The same workers in one process and in several, with --shard (then any number gives the same) and without."""
    processes = args.processes
    shard = "4" if processes == 3 else "6"  # a power of two of them for each worker
    for name, single, workers, more in (("plain", processes, processes, []), ("shards", 1, processes, ["--shard", shard]),
                                        ("two in each", 2 * processes, 2 * processes, [])):
        if 48 % workers:
            continue
        options = train_options(folder, "--epochs", "2", *more)
        one, many = folder / f"one {name}", folder / f"many {name}"
        code, out, err = run([args.program, *options, "--workers", single, "--out", one])
        check(code == 0, f"{name}, one process: exit {code}\n{out}{err}")
        code, out, err = run(mpirun(processes) + [args.program, *options, "--workers", workers, "--out", many])
        check(code == 0, f"{name}, {processes} processes: exit {code}\n{out}{err}")
        check(out.count("epoch 1 ") == 1, f"{name}: one process speaks for all, but it printed\n{out}")
        first, second = result(one), result(many)
        check(first[2] == second[2] and len(first[2]) == 8, f"{name}: losses differ: {first[2]} against {second[2]}")
        check(first[3] == second[3], f"{name}: epochs differ: {first[3]} against {second[3]}")
        check(first[1] == second[1], f"{name}: the checkpoints' bytes differ")
        record = second[0]
        check([rank["rank"] for rank in record["ranks"]] == list(range(workers)), f"{name}: ranks of the record")
        if processes > 1:
            check(record["communication"]["processes"] == processes, f"{name}: processes of the record")
            check(any("same weights, bit for bit" in note for note in record["notes"]),
                  f"{name}: {record['notes']}")
            for rank in record["ranks"]:
                total = sum(rank["phases_s"].values())
                check(abs(total - rank["wall_s"]) <= 0.01 * rank["wall_s"],
                      f"{name}: the ledger of rank {rank['rank']} adds up to {total} of {rank['wall_s']}")
        print(f"{name}: {single} workers in one process and {workers} in {processes} give the same bytes")


def resume(args, folder):
    """Stopped after one epoch and gone on with by other processes: the checkpoint of the uninterrupted run."""
    options = train_options(folder)
    whole, parts = folder / "whole", folder / "parts"
    for words in (["--epochs", "2", "--out", whole], ["--epochs", "1", "--out", parts],
                  ["--epochs", "2", "--out", parts, "--resume", parts]):
        code, out, err = run(mpirun(args.processes) + [args.program, *options, *words])
        check(code == 0, f"{words}: exit {code}\n{out}{err}")
    check(result(whole)[1] == result(parts)[1], "the resumed run's last checkpoint has other bytes")
    epochs = json.loads((parts / "record.json").read_text())["epochs"]
    check([epoch["epoch"] for epoch in epochs] == [1, 2], f"epochs of the resumed run: {epochs}")
    # The first process alone looks for the checkpoint; all end as it does.
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--resume", folder / "nowhere"])
    check(code == 3 and err.count("paceline:") == 1, f"--resume of nothing: exit {code}: {err}")
    print("a resumed run ends with the same bytes")


def timeline(args, folder):
    """One file of all ranks' spans; clocks are one here, so no collective may end before it has begun everywhere."""
    file = folder / "timeline.json"
    code, out, err = run(mpirun(args.processes) + [args.program, *train_options(folder, "--steps", "12"), "--timeline", file,
                                                   "--out", folder / "out"])
    check(code == 0, f"exit {code}\n{out}{err}")
    trace = json.loads(file.read_text())
    error = max(trace["otherData"]["clock_error_us"])
    spans = {}
    for event in trace["traceEvents"]:
        if event["name"] == "bucket 0":
            spans.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"]))
    check(sorted(spans) == list(range(args.processes)) and all(len(one) == 12 for one in spans.values()), f"{spans}")
    for step in zip(*spans.values()):
        begun, ended = max(one[0] for one in step), min(one[1] for one in step)
        check(begun <= ended + 2 * error, f"a sum was there {begun - ended} us before the last rank gave its part: {step}")
    print(f"{args.processes} ranks on one time axis, clocks within {error:.0f} us")


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


def runs(process):
    """Whether a process is there and has not ended: one that nobody has collected yet runs no more."""
    try:
        return not re.search(r"\nState:\s+Z", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return False


def lost(args, folder):
    for victim in range(args.processes):
        out = folder / f"lost{victim}"
        options = train_options(folder, "--steps", "10000000", "--evaluate-every", "0")
        job = subprocess.Popen([str(word) for word in mpirun(args.processes) + [args.program, *options, "--out", out]],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 60
            while not list(out.glob("checkpoint-*.safetensors")) and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(1.5)  # a heartbeat a second says where each is
            processes = children_of(job.pid)
            check(len(processes) == args.processes, f"{len(processes)} processes run of {args.processes}")
            begin = time.monotonic()
            os.kill(processes[victim], signal.SIGKILL)
            text = "".join(job.communicate(timeout=30))
        finally:
            stop(job)
        seconds = time.monotonic() - begin
        check(job.returncode != 0, "a run that lost a process ends with an error")
        check(seconds < 10, f"all others ended only after {seconds:.1f} s")
        said = [line for line in text.splitlines() if line.startswith("paceline: ")]
        if victim > 0:
            check(len(said) == 1 and f"rank {victim} on host" in said[0] and "is lost" in said[0]
                  and "of step" in said[0], f"rank {victim} killed, and it was said: {text}")
            record = json.loads((out / "record.json").read_text())
            check(record["status"] == "failed" and f"rank {victim}" in record["reason"], record["reason"])
        until = time.monotonic() + 5
        while (left := [process for process in processes if runs(process)]) and time.monotonic() < until:
            time.sleep(0.1)
        check(not left, f"processes {left} are left behind")
        print(f"rank {victim} killed: all ended after {seconds:.1f} s" + (f": {said[0]}" if said else ""))


def bf16(args, folder):
    """--gradients-as bf16: half the bytes, the same bits on all ranks, nearly the losses of fp32."""
    options = ["train", "--model", "mnist-cnn", *COMMON, "--steps", "12"]  # small buckets would travel as fp32
    records = {}
    for carried in ("fp32", "bf16"):
        code, out, err = run(mpirun(args.processes) + [args.program, *options, "--gradients-as", carried,
                                                       "--out", folder / carried])
        check(code == 0, f"{carried}: exit {code}\n{out}{err}")
        records[carried] = json.loads((folder / carried / "record.json").read_text())
        check(any("same weights, bit for bit" in note for note in records[carried]["notes"]), f"{records[carried]['notes']}")
    wide, narrow = (records[carried]["communication"]["bytes_sent"] for carried in ("fp32", "bf16"))
    check(0.49 * wide < narrow < 0.52 * wide, f"{narrow} bytes as bf16, {wide} as fp32")
    pairs = list(zip(*([step["loss"] for step in record["steps"]] for record in records.values())))
    check(any(a != b for a, b in pairs), "not one loss differs: were gradients rounded at all?")
    check(all(abs(a - b) < 0.02 * a for a, b in pairs), f"losses differ by more than 2 %: {pairs}")
    print(f"{narrow} bytes as bf16, {wide} as fp32; the last losses are {pairs[-1]}")


def restarts(args, folder):
    """paceline launch --restarts: a process killed at some step of each of two runs; the third ends as if nothing had been."""
    options = train_options(folder, "--steps", "1500", "--evaluate-every", "0")  # 4 steps an epoch: many checkpoints
    whole, out = folder / "whole", folder / "out"
    code, text, err = run(mpirun(args.processes) + [args.program, *options, "--out", whole])
    check(code == 0, f"exit {code}\n{text}{err}")
    job = subprocess.Popen([str(word) for word in [args.program, "launch", "-n", args.processes, "--restarts", "3", "--",
                                                   *options, "--out", out]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    chance = random.Random(args.seed)
    killed = []
    try:
        for _ in range(2):
            before = set(out.glob("checkpoint-*.safetensors"))
            until = time.monotonic() + 30
            while set(out.glob("checkpoint-*.safetensors")) <= before and time.monotonic() < until and job.poll() is None:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.3))
            launched = [child for child in children(job.pid)]
            ranks = children_of(launched[0]) if launched else []
            if len(ranks) != args.processes:
                continue  # between two runs
            killed.append(chance.randrange(args.processes))
            os.kill(ranks[killed[-1]], signal.SIGKILL)
            time.sleep(0.5)
        text, err = job.communicate(timeout=120)
    finally:
        for launched in children(job.pid):
            os.kill(launched, signal.SIGTERM)
        stop(job)
    check(job.returncode == 0, f"exit {job.returncode}\n{text}{err}")
    check(err.count("paceline: restart") == len(killed) > 0, f"ranks {killed} were killed, and it was said: {err}")
    check(result(whole)[1] == result(out)[1], f"ranks {killed} were killed, and the last checkpoint has other bytes")
    print(f"ranks {killed} killed one after the other: the weights of the undisturbed run")


def doctor(args, folder):
    """One table of the processes, from the first of them."""
    code, out, err = run([args.program, "launch", "-n", args.processes, "--", "doctor", "--no-measure"])
    check(code == 0 and out.count("\nprocesses\n") == 1, f"exit {code}\n{out}{err}")
    for rank in range(args.processes):
        check(len(re.findall(rf"^  rank {rank} .*cores", out, re.M)) == 1, f"rank {rank} is not in the table once:\n{out}")
    check(f"{args.processes} processes, joined by Open MPI" in out, out)
    print("\n".join(line for line in out.splitlines() if re.match(r"  (launcher|rank|odd)", line)))


def failed(args, folder):
    """The last process alone cannot read its data; all options are wrong alike; options that do not go together."""
    last = args.processes - 1
    options = train_options(folder, "--steps", "10")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--workers", 2 * args.processes + 1])
    check(code == 2 and err.count("paceline:") == 1 and "--workers" in err, f"workers: exit {code}: {err}")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--lr", "1e30"])
    check(code == 3 and err.count("paceline:") == 1 and "no longer finite" in err, f"lr: exit {code}: {err}")
    code, out, err = run(mpirun(args.processes) + [args.program, "scale", "--model", "mnist-cnn"])
    check(code == 2 and err.count("paceline:") == 1 and "one process" in err, f"scale: exit {code}: {err}")
    # Only one process has an error: the others are told.
    mine = folder / "only-here.toml"
    script = f'if [ $OMPI_COMM_WORLD_RANK = {last} ]; then cd "{folder}/elsewhere"; fi; exec "$@"'
    (folder / "elsewhere").mkdir()
    mine.write_text(MODEL)
    words = [args.program, "train", "--model", "only-here.toml", *COMMON, "--steps", "10"]
    code, out, err = run(mpirun(args.processes) + ["sh", "-c", script, "sh", *words], cwd=folder)
    check(code != 0 and err.count("paceline:") == 1 and "only-here.toml" in err, f"one process: exit {code}: {err}")
    print("errors of all and of one process are said once")


def comm(args, folder):
    """paceline comm over processes, started by paceline launch: every result right, a fit, nothing negative."""
    code, out, err = run([args.program, "launch", "-n", args.processes, "--", "comm", "--sizes", "1K:1M", "--repeats", "5",
                          "--out", folder / "comm"])
    check(code == 0, f"exit {code}\n{out}{err}")
    record = json.loads((folder / "comm/record.json").read_text())
    check(record["workers"] == args.processes and record["communication"]["processes"] == args.processes, "processes")
    check(len(record["collectives"]) == 4 * 6, f"{len(record['collectives'])} rows of 4 collectives and 6 sizes")
    for one in record["collectives"]:
        check(one["correct"] and min(one["seconds"]) > 0, f"{one['collective']} of {one['bytes']} bytes")
    for fit in record["link_fits"]:
        check(fit["alpha_s"] >= 0 and fit["bytes_per_s"] > 0 and fit["residual"] >= 0, f"fit {fit}")
    print(out.strip().splitlines()[-1])


CASES = {case.__name__: case for case in (collectives, train, resume, timeline, comm, bf16, doctor, lost, restarts, failed)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--runner", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of which process is killed, and when")
    args = parser.parse_args()
    missing = None
    if not shutil.which("mpirun"):
        missing = "there is no mpirun (Debian: openmpi-bin)"
    elif not (args.program.parent / "paceline_mpi.so").exists():
        missing = "the program was built without MPI (Debian: libopenmpi-dev)"
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    args.program, args.runner = args.program.resolve(), args.runner.resolve()
    with tempfile.TemporaryDirectory(prefix="paceline-ranks-") as folder:
        os.environ["PACELINE_CACHE"] = folder  # the kernels that were found fastest are every run's
        CASES[args.case](args, Path(folder))


if __name__ == "__main__":
    main()
