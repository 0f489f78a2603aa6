#!/usr/bin/env python3
"""Real mpirun with 1 to 4 processes on this machine, oversubscribed where it has fewer cores.

    ranks.py CASE --program build/release/paceline --runner build/release/.../ranks_run [--processes P]

Cases:
  collectives   every collective right for counts 0, 1, prime and large, with 1 and 2 workers a process
  gloo          processes without a launcher: collectives, and the same bytes as mpirun's and one process's
  strangers     what can go wrong before they meet
  stranger      hundreds of connections of strangers (--times) before, while and after processes meet: the same bytes
  secret        who has no secret, or another process's RANK, is told so and does not take part
  bare          the program without any module beside it
  train         the checkpoint and all losses are those of as many workers in one process, byte for byte
  uneven        data that does not divide, a slow rank, a rank without work
  resume        a training stopped and gone on with ends with the bytes of one that was not
  timeline      --timeline: all ranks on one time axis
  overlap       --timeline: buckets are summed while the backward pass goes on, which waits for nobody
  lost          a process killed while it trains: all end at once, and one sentence names it
  stopped       a process that is stopped (SIGSTOP): said within 5 s, given up at the deadline
  together      several killed at once, the first among them: the lowest that is left names all
  left          a process that is stopped where nobody is left to give it up: it is ended, mpirun too
  hung          a process with a thread that hangs while its heartbeats go on: said within 5 s, given up at the deadline
  worker        a worker of one process hangs, alone and among processes: the one rank is named within 5 s
  gpu           a call of NCCL or of a GPU that never returns: said, and the process ended, within the deadline and 10 s
  standstill    all workers hang at once, of one process and of several: said within 5 s, given up at the deadline
  outside       a process that hangs outside of its training loop: said within 5 s; one that only takes long is not
  asked         a signal to one process asks the run to stop: all end with its code
  stops         the same at --times random moments
  unread        output that nobody reads, or whose reader is gone: the usual bytes
  suspended     a run stopped as a whole for longer than its deadline: complete, the usual bytes; paused: in a window, which is marked
  kills         kill -9 of a random process at a random step, --times often
  comm          paceline comm through paceline launch: every collective right, and a fit
  restarts      paceline launch --restarts: the run that is lost twice ends with the undisturbed run's weights
  ended         a process killed after the last checkpoint: --restarts completes the run
  absent        a process that hangs before it has met the others: named within 5 s, all end after a minute
  meeting       a process that hangs or is stopped before the heartbeats: named within 5 s
  disk          the disk of --out stops to answer: said within 5 s, given up after ten deadlines
  doctor        paceline doctor in a launch: one table of the processes
  studies       scale, sweep and converge in several processes
  search        a search in several processes, of which one configuration diverges
  diverges      --on-nan stop, skip, rollback: the same end and bytes, however many share the work
  bf16          --gradients-as bf16: half the bytes, the same bits on all ranks
  failed, refused: an error of one process, a thread that the system refuses one: one sentence, its exit code, nobody left
Ends with 77 and why where mpirun or the module is not there.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from asked import asked, stops
from diverging import diverges
from doors import secret, stranger, strangers
from failures import ended, failed, kills, lost, refused, restarts, together
from hanging_gpu import gpu
from launching import (COMMON, MODEL, check, children_of, errors_in, mpirun, need, plain, processor_seconds, result, run, stop,
                       train_options)
from readers import paused, suspended, unread
from searches import search
from spans import overlap, timeline
from stuck import absent, disk, hung, left, meeting, outside, standstill, stopped, worker


def collectives(args, folder):
    for local in (1, 2):
        for messages in ([], ["messages"]):
            code, out, err = run(mpirun(args.processes) + [args.runner, args.program.parent, local, *messages])
            check(code == 0, f"{local} workers a process: exit {code}\n{out}{err}")
            print(out.strip())


def gloo(args, folder):
    """No launcher, only RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: every collective right, and the bytes that mpirun and
    one process give."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    for local in (1, 2):
        for messages in ([], ["messages"]):
            codes, out, err = plain(args.processes, [args.runner, args.program.parent, local, *messages])
            check(codes == [0] * args.processes, f"{local} workers a process: exit {codes}\n{out}{err}")
            print(out.strip())
    options = train_options(folder, "--epochs", "2", "--shard", "4" if args.processes == 3 else "6")
    one, met, launched = folder / "one", folder / "met", folder / "launched"
    code, out, err = run([args.program, *options, "--out", one])
    check(code == 0, f"one process: exit {code}\n{out}{err}")
    codes, out, err = plain(args.processes, [args.program, *options, "--out", met])
    check(codes == [0] * args.processes, f"gloo: exit {codes}\n{out}{err}")
    check(out.count("epoch 1 ") == 1, f"one process speaks for all, but they printed\n{out}")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--out", launched])
    check(code == 0, f"mpirun: exit {code}\n{out}{err}")
    first, second, third = result(one), result(met), result(launched)
    check(first[1:] == second[1:] == third[1:], "losses or the checkpoint's bytes differ")
    record = second[0]["communication"]
    check(record["processes"] == args.processes and "gloo" in record["library"], f"communication of the record: {record}")
    print("the bytes of one process, of mpirun and of processes that met are the same")


def bare(args, folder):
    """The program alone, no module beside it: it works, and says what to install only when it is asked for several. Modules that
    others may have put above it are not opened."""
    program = folder / "x" / "paceline"
    for place in (folder / "lib/paceline", folder, program.parent):
        place.mkdir(parents=True, exist_ok=True)
        for name in ("paceline_gloo.so", "paceline_mpi.so"):
            if place != program.parent:
                (place / name).write_text("of another user")
    shutil.copy2(args.program, program)
    code, out, err = run([program, *train_options(folder, "--steps", "4"), "--out", folder / "alone"])
    check(code == 0, f"alone: exit {code}\n{out}{err}")
    asked = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    code, _, err = run([program, *train_options(folder, "--steps", "4")], env={**os.environ, **asked})
    check(code == 5 and "libgloo-dev" in err and "is not there" in err and err.count("paceline:") == 1, f"gloo: exit {code}: {err}")
    asked = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    code, _, err = run([program, *train_options(folder, "--steps", "4")], env={**os.environ, **asked})
    check(code == 5 and "libopenmpi-dev" in err and err.count("paceline:") == 1, f"mpi: exit {code}: {err}")
    code, _, err = run([program, "serve", folder])
    check(code == 2 and "libcpp-httplib-dev" in err and err.count("paceline:") == 1, f"serve: exit {code}: {err}")
    print("without modules the program works alone, and names what to install when it is asked for")


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
            communication = record["communication"]
            check(communication["processes"] == processes and communication["nodes"] == 1 and
                  communication["processes_of_nodes"] == [processes] and "placement" not in communication,
                  f"{name}: processes of the record: {communication}")
            check([rank["process"] for rank in record["ranks"]] == [rank * processes // workers for rank in range(workers)] and
                  all(rank["peak_bytes"] > 1e6 and rank["bytes_sent"] > 0 for rank in record["ranks"]),
                  f"{name}: process, memory and bytes of each rank: {record['ranks']}")
            check("direct (memory of the host)" in communication["algorithm"] and communication["gradient_bytes"] > 8192,
                  f"{name}: gradients are summed where they lie, as between threads: {communication}")
            check(any("same weights, bit for bit" in note for note in record["notes"]),
                  f"{name}: {record['notes']}")
            for rank in record["ranks"]:
                total = sum(rank["phases_s"].values())
                check(abs(total - rank["wall_s"]) <= 0.01 * rank["wall_s"],
                      f"{name}: the ledger of rank {rank['rank']} adds up to {total} of {rank['wall_s']}")
        print(f"{name}: {single} workers in one process and {workers} in {processes} give the same bytes")


def uneven(args, folder):
    """Data that does not divide, ranks of different speed, a rank without anything to evaluate: the bytes of one process."""
    (folder / "model.toml").write_text(MODEL)
    processes = args.processes
    options = ["train", "--model", folder / "model.toml", "--data", f"synthetic,train=203,test={processes - 1}", "--precision",
               "fp32", "--threads", "1", "--global-batch", 12 * processes, "--lr", "0.05", "--log-steps", "--no-pin", "--epochs", "3"]
    one, many = folder / "one", folder / "many"
    code, out, err = run([args.program, *options, "--workers", processes, "--out", one])
    check(code == 0, f"one process: exit {code}\n{out}{err}")
    code, out, err = run(mpirun(processes) + [args.program, *options, "--emulate-straggler", "rank=1,slower=4", "--out", many])
    check(code == 0, f"{processes} processes: exit {code}\n{out}{err}")
    first, second = result(one), result(many)
    check(first[1:] == second[1:], f"{first[2:]} against {second[2:]}, or the checkpoints' bytes")
    dropped = 203 % (12 * processes)
    check(second[0]["data"]["dropped_per_epoch"] == dropped > 0, f"{second[0]['data']} and not {dropped} dropped")
    check(len(second[2]) == 3 * (203 // (12 * processes)), f"{len(second[2])} steps")
    accuracy = second[3][-1][2]
    check(accuracy * (processes - 1) == round(accuracy * (processes - 1)), f"every test sample counts once: {accuracy}")
    print(f"{dropped} samples left over, {processes - 1} test samples for {processes} ranks, one of them slow: the same bytes")


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
    # One command for begin, middle and end; the first process alone knows where it stands.
    again = folder / "again"
    for epochs, words in (("1", "train loss"), ("2", "resumed from"), ("2", "nothing is left to do"), ("2", "nothing is left to do")):
        code, out, err = run(mpirun(args.processes) + [args.program, *options, "--epochs", epochs, "--out", again, "--resume", "auto"])
        check(code == 0 and (words in out or words in (again / "record.json").read_text()),
              f"--resume auto up to epoch {epochs}: exit {code}, and not '{words}':\n{out}{err}")
    check(result(whole)[1] == result(again)[1], "--resume auto: the last checkpoint has other bytes")
    # The first process alone looks for the checkpoint; all end as it does.
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--resume", folder / "nowhere"])
    check(code == 3 and errors_in(err) == 1, f"--resume of nothing: exit {code}: {err}")
    print("a resumed run ends with the same bytes")


def bf16(args, folder):
    """--gradients-as bf16: half the bytes, the same bits on all ranks, nearly the losses of fp32."""
    options = ["train", "--model", "mnist-cnn", *COMMON, "--steps", "12"]  # small buckets would travel as fp32
    records = {}
    for carried in ("fp32", "bf16"):  # between hosts, where bytes count: without the memory that they share here
        code, out, err = run(mpirun(args.processes) + [args.program, *options, "--gradients-as", carried, "--no-shared-memory",
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


def check_study(study, command, cores):
    """What a study in several processes measures beside its cells: each in the processes of its set-up, and kept by one
    that goes on."""
    def read():
        return {path.stem: json.loads(path.read_text()) for path in (study / "records").glob("*.json")}

    records = read()
    spares = {name: record for name, record in records.items() if "-spare" in name}
    check(spares, f"windows of two steps tell nothing of other programs, and none was repeated: {sorted(records)}")
    for name, record in spares.items():
        first = records[name[: name.index("-spare")] + "-r0"]
        check(record["status"] == "complete" and record["repeat"] > first["repeat"], f"{name}: {record['status']} {record['reason']}")
        check(any(note.startswith("repeated: ") for note in record["notes"]), f"{name}: why is not said: {record['notes']}")
        check(record["window"]["wall_s"] > 1, f"{name}: {record['window']['wall_s']} s")
        check(record["communication"]["processes"] == first["communication"]["processes"], f"{name}: processes")
        check(len(record["last_steps"]["ranks"]) == record["workers"], f"{name}: spans of {record['last_steps']}")
    check("sweep-b12-r0" not in records and records["scale-weak-w1-b12-r0"].get("also") == "sweep",
          f"one worker with one thread is the same in sweep and scaling: {sorted(records)}")
    check(("comm-w2" in records) == (cores >= 2), f"the all-reduce alone: {sorted(records)}")
    if cores >= 2:
        alone = records["comm-w2"]
        check(alone["status"] == "complete" and alone["communication"]["processes"] == 2, f"comm: {alone['status']} {alone['reason']}")
        check(len(alone["collectives"]) > 3 and all(one["correct"] for one in alone["collectives"]), f"{alone['collectives']}")
    code, out, err = run(command)
    check(code == 0, f"study again: exit {code}\n{out}{err}")
    anew = {name for name, record in read().items() if record["created"] != records.get(name, {}).get("created")}
    check(not anew, f"a study that goes on measures nothing that is there, spares neither, but {sorted(anew)}")


def studies(args, folder):
    """scale, sweep and converge in several processes: cells of fewer workers leave the others waiting, a record is written
    once, and the same command goes on from what is there."""
    (folder / "model.toml").write_text(MODEL)
    common = ["--model", folder / "model.toml", "--data", "synthetic,train=192,test=50", "--precision", "fp32", "--threads", "1",
              "--no-pin"]
    timed = [*common, "--repeats", "1", "--window-steps", "3", "--window-seconds", "9", "--measure-again", "0", "--batches", "12"]
    both = 2 * args.processes
    workers = [1, args.processes, both, both + 1]
    line = [args.program, "scale", *timed, "--workers", ",".join(map(str, workers)), "--out", folder / "scale"]
    code, out, err = run(mpirun(args.processes) + line)
    check(code == 0, f"scale: exit {code}\n{out}{err}")
    for count in workers:
        record = json.loads((folder / f"scale/records/scale-weak-w{count}-b12-r0.json").read_text())
        if count > both:
            check(record["status"] == "skipped" and "do not divide" in record["reason"], record["reason"])
            continue
        check(record["status"] == "complete", f"{count} workers: {record['reason']}")
        check(len(record["ranks"]) == count, f"{count} workers: {len(record['ranks'])} ranks")
        check((record["communication"].get("processes") or 1) == min(count, args.processes), f"{count} workers: processes")
    check(out.count("scale     ✓ 4 cells") == 1 and (folder / "scale/report.html").exists(), f"one process speaks for all:\n{out}")
    code, again, err = run(mpirun(args.processes) + line)
    check(code == 0 and again.count("(3 kept from before, 1 not run)") == 1, f"scale again: exit {code}\n{again}{err}")

    code, out, err = run(mpirun(args.processes) + [args.program, "sweep", *timed, "--out", folder / "sweep"])
    check(code == 0 and (folder / "sweep/records/sweep-b12-r0.json").exists(), f"sweep: exit {code}\n{out}{err}")
    code, out, err = run(mpirun(args.processes) + [args.program, "converge", *common, "--repeats", "1", "--steps", "4",
                                                   "--baseline-batch", "12", "--large-batch", "48", "--workers",
                                                   args.processes, "--out", folder / "converge"])
    check(code == 0 and len(list((folder / "converge/records").glob("*.json"))) == 7, f"converge: exit {code}\n{out}{err}")

    # Of the cores that any process has: each bound to one of its own, where there are as many.
    cores = len(os.sched_getaffinity(0))
    bound = mpirun(args.processes, "core" if cores >= args.processes else "none")
    study = bound + [args.program, "study", *common, "--repeats", "1", "--window-steps", "2", "--window-seconds", "1", "--batches", "12", "--workers", "1,2",
                     "--epochs", "1", "--baseline-batch", "12", "--large-batch", "48", "--out", folder / "study"]
    code, out, err = run(study)
    check(code == 0, f"study: exit {code}\n{out}{err}")
    check("have waited" not in err, f"nobody holds up the others: {err}")
    record = json.loads((folder / "study/records/converge-linear-warm-up-sync-bn-r0.json").read_text())
    if cores >= 2:
        check(record["status"] == "complete" and record["workers"] == 2, f"{record['workers']} workers: {record['reason']}")
        check(record["communication"]["processes"] == 2, f"{record['communication']['processes']} processes")

    check_study(folder / "study", study, cores)

    # Beside other programs the first process waits for a quiet moment, and that holds nobody up.
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        code, out, err = run(mpirun(args.processes) + [args.program, "sweep", *common, "--repeats", "1", "--batches", "12,24", "--window-steps", "2",
                                                       "--window-seconds", "1", "--measure-again", "3", "--out", folder / "busy"])
    finally:
        for one in busy:
            one.kill()
            one.wait()
    check(code == 0 and "waiting: other programs" in out + err, f"sweep beside others: exit {code}\n{out}{err}")
    check("have waited" not in err, f"a wait for a quiet moment holds nobody up: {err}")

    # Fewer workers than processes, where that is said to be meant.
    code, out, err = run(mpirun(args.processes) + [args.program, "train", *common, "--steps", "4", "--global-batch", "12", "--workers",
                                                   "1", "--placement", "spread", "--out", folder / "fewer"])
    record = json.loads((folder / "fewer/record.json").read_text()) if code == 0 else {}
    check(code == 0 and record["workers"] == 1 and len(record["ranks"]) == 1, f"train in one of the processes: exit {code}\n{out}{err}")

    # A process without work uses next to no processor time.
    words = mpirun(args.processes) + [args.program, "sweep", *common, "--repeats", "1", "--batches", "64", "--window-steps",
                                      "100000", "--window-seconds", "5", "--measure-again", "0", "--out", folder / "long"]
    job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        events, until = folder / "long/events.jsonl", time.monotonic() + 60
        while time.monotonic() < until and '"cell_begun"' not in (events.read_text() if events.exists() else ""):
            time.sleep(0.05)
        time.sleep(0.5)  # the processes without work begin to wait
        processes = children_of(job.pid)
        check(len(processes) == args.processes, f"{len(processes)} processes run of {args.processes}")
        before = [processor_seconds(process) for process in processes]
        time.sleep(2)
        used = [processor_seconds(process) - was for process, was in zip(processes, before)]
        out, err = job.communicate(timeout=60)
    finally:
        stop(job)
    check(job.returncode == 0 and "have waited" not in err, f"exit {job.returncode}\n{out}{err}")
    check(max(used[1:]) < 0.2 and used[0] > 0.4, f"processor time within 2 s of each process: {used}")
    print(f"scale, sweep and converge in {args.processes} processes; a process without work used {max(used[1:]):.2f} s of 2 s")


def doctor(args, folder):
    """One table of the processes, from the first of them; and what is odd about a launch, in words."""
    code, out, err = run([args.program, "launch", "-n", args.processes, "--", "doctor", "--no-measure"])
    check(code == 0 and out.count("\nprocesses\n") == 1, f"exit {code}\n{out}{err}")
    for rank in range(args.processes):
        line = rf"^  {rank} +\S+ +{rank} +\S+ \(\d+ of \d+\) +\S"  # rank, host, local rank, cores, GPU
        check(len(re.findall(line, out, re.M)) == 1, f"rank {rank} is not in the table once:\n{out}")
    check(f"{args.processes} processes, joined by Open MPI" in out, out)
    print("\n".join(line for line in out.splitlines() if re.match(r"  (launcher|rank|\d|odd)", line)))

    # Another version in one process: the same program with one letter of its version changed.
    version = run([args.program, "--version"])[1].split(" ", 1)[1].strip()
    other = folder / "paceline"
    stamp = version.encode()[:8]  # a compiler may keep the rest apart, as a number of eight bytes
    data = args.program.read_bytes()
    check(data.count(stamp) >= 1, f"the program does not hold its version {version}")
    other.write_bytes(data.replace(stamp, stamp.replace(b"0.", b"9.", 1)))
    other.chmod(0o755)
    (folder / "paceline_mpi.so").symlink_to(args.program.parent / "paceline_mpi.so")
    words = ["doctor", "--no-measure"]
    code, out, err = run([*mpirun(1), args.program, *words, ":", "-np", "1", other, *words])
    check(code == 5 and errors_in(err) == 1 and "install one version on all hosts" in err, f"versions: exit {code}: {err}")
    code, out, err = run([*mpirun(1), args.program, *words, ":", "-np", "1", args.program, "doctor"])
    check(code == 5 and errors_in(err) == 1 and "another command" in err, f"commands: exit {code}: {err}")

    # ProcessGroup of which each believes to be alone.
    code, out, err = run([args.program, *words], env={**os.environ, "PMI_SIZE": "4", "PMI_RANK": "1"})
    check(code == 5 and ("MASTER_ADDR" in err or "do not work together" in err), f"another MPI: exit {code}: {err}")
    code, out, err = run([args.program, *words], env={**os.environ, "SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"})
    check(code == 0 and "put srun before the command" in out, f"no step: exit {code}\n{out}{err}")
    print("other versions, other commands, another MPI and a job without a step are said in words")
    folder_of_mpirun(args, folder)


def folder_of_mpirun(args, folder):
    """mpirun's TMPDIR is a folder of its own below the user's, which is gone afterwards."""
    (folder / "bin").mkdir()
    (folder / "bin" / "mpirun").write_text('#!/bin/sh\ntouch "$TMPDIR/left" && echo "in $TMPDIR"\n')
    (folder / "bin" / "mpirun").chmod(0o755)
    place = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(folder)}
    code, out, err = run([args.program, "launch", "--by", "mpirun", "-n", 2, "--", "doctor"], env=place)
    check(code == 0 and f"in {folder}/paceline-mpirun-" in out, f"exit {code}: {out}{err}")
    left = [path.name for path in folder.iterdir() if path.name.startswith("paceline-mpirun-") or path.name == "left"]
    check(left == [], f"left behind: {left}")


def comm(args, folder):
    """paceline comm over processes, started by paceline launch: every result right, a fit, nothing negative."""
    code, out, err = run([args.program, "launch", "-n", args.processes, "--", "comm", "--sizes", "1K:1M", "--repeats", "5",
                          "--out", folder / "comm"])
    check(code == 0, f"exit {code}\n{out}{err}")
    record = json.loads((folder / "comm/record.json").read_text())
    check(record["workers"] == args.processes and record["communication"]["processes"] == args.processes, "processes")
    check(len(record["collectives"]) == 7 * 6, f"{len(record['collectives'])} rows of 7 collectives and 6 sizes")
    for one in record["collectives"]:
        check(one["correct"] and min(one["seconds"]) > 0, f"{one['collective']} of {one['bytes']} bytes")
    for fit in record["link_fits"]:
        check(fit["alpha_s"] >= 0 and fit["bytes_per_s"] > 0 and fit["residual"] >= 0, f"fit {fit}")
    print(out.strip().splitlines()[-1])


CASES = {case.__name__: case for case in (collectives, gloo, strangers, bare, train, uneven, resume, timeline, overlap, comm, bf16, diverges, studies, search,
                                          stranger, secret, doctor, lost, together, stopped, left, hung, worker, gpu, standstill, outside,
                                          asked, stops, unread, suspended, paused, kills, restarts, ended, absent, meeting, disk, failed, refused)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--runner", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of which process is killed, and in which step")
    parser.add_argument("--times", type=int, default=6, help="how often kills kills and stops stops; connections of stranger")
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
        os.chdir(folder)  # what has no --out
        os.environ["PACELINE_CACHE"] = folder  # the kernels that were found fastest are every run's
        CASES[args.case](args, Path(folder))


if __name__ == "__main__":
    main()
