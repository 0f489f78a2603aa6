#!/usr/bin/env python3
"""A real Slurm of two nodes, brought up on this machine for the length of the test, in a directory of its own.

    slurm.py --program build/release/paceline [CASE..]

srun with PMIx, PMI2 and neither. A job with account, memory, staged data and a site file. A study on 1 and 2 nodes, which its report tells apart. The cells of a study as an array. A job script made by `paceline sbatch` trains across both nodes, loses a process and is requeued, is requeued by Slurm in the
middle, and finishes from its checkpoint with the bytes of a training that nobody disturbed. Ends with 77 and why where Slurm is not installed.
"""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster import Cluster, check, missing, ranks_of, restarts_of, state_of, states_of

TRAIN = ["train", "--model", "mnist-cnn", "--data", "synthetic,train=192,test=48", "--precision", "fp32", "--threads", "1",
         "--global-batch", "48", "--lr", "0.02", "--no-pin", "--epochs", "60"]

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def requeued(args, cluster):
    folder = cluster.folder
    out, alone = folder / "out", folder / "alone"
    text = cluster.ask(args.program, "sbatch", "--nodes", 2, "--workers-per-node", 1, "--cores", 2, "--name", "twice", "--time",
                       "00:10:00", "--script", folder / "job.sbatch", "--submit", "--", *TRAIN, "--out", out)
    job = re.search(r"job (\d+)", text).group(1)
    log = folder / f"twice-{job}.log"
    cluster.wait_for(lambda: list(out.glob("checkpoint-*.safetensors")) or "FAILED" in state_of(cluster, job), "a checkpoint")
    check(state_of(cluster, job) == "RUNNING", f"{state_of(cluster, job)}:\n{log.read_text()}")
    # A process is killed: the script has the job requeued. Then Slurm itself is asked to, as after a lost host.
    ranks = ranks_of(cluster)
    check(sorted(ranks) == [0, 1], f"tasks of the job: {ranks}")
    cores = [len(os.sched_getaffinity(process)) for process in ranks.values()]
    check(cores == [2, 2], f"each task was to have the 2 cores that --cores asks for, and they have {cores}")
    os.kill(ranks[1], signal.SIGKILL)
    cluster.wait_for(lambda: restarts_of(cluster, job) == 1 and state_of(cluster, job) == "RUNNING", "the second run", 150)
    check("rank 1 on host" in log.read_text() and "is lost" in log.read_text(), f"the loss was not said:\n{log.read_text()}")
    before = set(out.glob("checkpoint-*.safetensors"))
    cluster.wait_for(lambda: set(out.glob("checkpoint-*.safetensors")) - before, "a checkpoint of the second run")
    cluster.ask("scontrol", "requeue", job)
    cluster.wait_for(lambda: restarts_of(cluster, job) == 2 and state_of(cluster, job) not in ("PENDING", "RUNNING", "COMPLETING"),
                     "the end of the third run", 200)
    said = log.read_text()
    check(state_of(cluster, job) == "COMPLETED", f"{state_of(cluster, job)}:\n{said}")
    record = json.loads((out / "record.json").read_text())
    resumed = next((note for note in record["notes"] if note.startswith("resumed from")), None)
    check(resumed, f"the third run began anew:\n{said}")
    lost = [one["reason"] for one in record["restarts"]]
    check(len(lost) >= 1 and "rank 1 on host" in lost[0], f"what the record has of the lost process: {lost}")
    check(record["communication"]["processes"] == 2 and "srun" in record["communication"]["launcher"], record["communication"])
    check(len(record["epochs"]) == 60, f"{len(record['epochs'])} epochs of 60")
    cluster.ask(args.program, *TRAIN, "--workers", 2, "--out", alone)
    newest = [sorted(path.glob("checkpoint-*.safetensors"))[-1] for path in (out, alone)]
    check(newest[0].read_bytes() == newest[1].read_bytes(), f"{newest} differ")
    print(f"two nodes, a process killed, requeued twice, {resumed}: the bytes of 2 workers in one undisturbed process")


def scaled(args, cluster):
    """A study as a job: every command that measures is started, and the queue is asked."""
    out = cluster.folder / "scaled"
    text = cluster.ask(args.program, "sbatch", "--nodes", 2, "--workers-per-node", 2, "--cores", 1, "--name", "scaled", "--time", "00:10:00",
                       "--script", cluster.folder / "scale.sbatch", "--submit", "--", "scale", "--model", "mnist-cnn", "--data",
                       "synthetic,train=192,test=48", "--precision", "fp32", "--threads", 1, "--no-pin", "--workers", "1,2", "--placement", "both",
                       "--batches", 8, "--repeats", 1, "--window-steps", 4, "--warmup-steps", 1, "--out", out)
    job = re.search(r"job (\d+)", text).group(1)
    check(re.search(r"queue: [A-Z]+", text) and f"records: {out / 'records'}" in text, f"what sbatch said: {text}")
    log = cluster.folder / f"scaled-{job}.log"
    cluster.wait_for(lambda: state_of(cluster, job) not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"), "the end of the study", 200)
    said = log.read_text()
    check(state_of(cluster, job) == "COMPLETED", f"{state_of(cluster, job)}:\n{said}")
    # Two workers on one node and on two: two rows, told apart by a column.
    for name, nodes in (("scale-weak-w2-b8-r0", 1), ("scale-weak-w2-b8-r0-spread", 2)):
        record = json.loads((out / f"records/{name}.json").read_text())
        check(record["status"] == "complete" and record["communication"]["processes"] == 2 and record["communication"]["nodes"] == nodes and
              "srun" in record["communication"]["launcher"], f"{name}: {record['status']}: {record['communication']}\n{said}")
        check(record["environment"]["cores"] == 2, f"{name}: two tasks with a core each on a node are 2 cores: {record['environment']}")
    rows = list(csv.DictReader((out / "csv/scale-weak-time.csv").open()))
    check([(row["workers"], row["nodes"]) for row in rows] == [("1", "1"), ("2", "1"), ("2", "2")], f"rows of the report: {rows}")
    print(f"a study of three cells as a job on two nodes; sbatch said: {re.search(r'queue: .*', text).group(0)}")


def shared(args, cluster):
    """The cells of a study as the jobs of an array, and a job behind them that joins their parts: beside the same study as one job."""
    folder = cluster.folder
    whole, parts = folder / "whole", folder / "parts"
    study = ["study", "--model", "mnist-cnn", "--data", "synthetic,train=192,test=48", "--precision", "fp32", "--threads", 1, "--no-pin",
             "--compare", "workers", "--workers", "1,2", "--batches", "8,16", "--mode", "weak", "--baseline-batch", 8, "--epochs", 1, "--repeats", 1,
             "--window-steps", 4, "--warmup-steps", 1]

    def submit(name, out, *more):
        text = cluster.ask(args.program, "sbatch", "--nodes", 1, "--workers-per-node", 2, "--cores", 1, "--name", name, "--time", "00:10:00",
                           "--script", folder / f"{name}.sbatch", "--submit", *more, "--", *study, "--out", out)
        return re.findall(r"^job (\d+) ", text, re.M)

    (alone,) = submit("whole", whole)
    job, join = submit("shared", parts, "--array", "3%2")
    cluster.wait_for(lambda: all(state in ENDED for one in (alone, job, join) for state in states_of(cluster, one)), "the end of the array", 400)
    logs = "\n".join(f"{log.name}:\n{log.read_text()}" for log in sorted(folder.glob("shared-*.log")))
    check(states_of(cluster, job) == ["COMPLETED"] * 3 and states_of(cluster, join) == ["COMPLETED"], f"{states_of(cluster, job)}:\n{logs}")
    check(len(list(folder.glob(f"shared-{job}-*.log"))) == 3 and (folder / f"shared-join-{join}.log").exists(), f"logs of the array: {logs}")
    # Every cell ran once, in one part, with the outcome that it has in the study.
    # What the study repeats when it has seen all cells is no part's.
    records = {out: {path.stem: json.loads(path.read_text()) for path in out.glob("**/records/*.json") if not re.search(r"-spare\d*$", path.stem)}
               for out in (whole, parts)}
    found = sorted(path.stem for path in parts.glob("part-*/records/*.json"))
    check(found == sorted(set(found)) and set(found) == set(records[whole]), f"cells of the parts {found}, of the study {sorted(records[whole])}")
    check(all(any((parts / f"part-{part}" / "records").glob("*.json")) for part in (1, 2, 3)), "a part has no cells")
    learned = 0
    for name, record in records[whole].items():
        other = records[parts][name]
        check(record["status"] == other["status"] in ("complete", "skipped"), f"{name}: {record['status']}, {other['status']}")
        outcome = [[[epoch.get(key) for key in ("train_loss", "test_loss", "test_accuracy")] for epoch in one["epochs"]] for one in (record, other)]
        check(outcome[0] == outcome[1], f"{name}: the array's job learned {outcome[1]}, the study {outcome[0]}")
        learned += bool(outcome[0])
    check(learned >= 2, f"only {learned} trainings were compared")
    for name in ("scale-weak-time", "sweep", "converge", "converge-workers", "collectives"):
        tables = [rows_of(out / f"csv/{name}.csv") for out in (whole, parts)]
        check(tables[0] and tables[0] == tables[1], f"{name}: the report of the parts has the rows {tables[1]}, the study's {tables[0]}")
    check((parts / "report.html").stat().st_size > 10_000, "the report's page is small")
    print(f"a study of {len(found)} cells as an array of 3 jobs and one that joins them: each cell once, {learned} trainings with the study's losses, "
          f"the tables of its report")


def rows_of(table):
    """What of each row no clock decides."""
    names = ("variant", "collective", "bytes [B]", "workers", "nodes", "processes", "threads", "local_batch", "global_batch", "updates", "test_loss",
             "accuracy")
    return [{name: row[name] for name in names if name in row} for row in csv.DictReader(table.open())]


def unlike(args, cluster):
    """srun with PMIx, PMI2 and without either, on both nodes: the bytes of one process, and a lost rank is named."""
    one = cluster.folder / "one"
    train = [word if word != "60" else "2" for word in TRAIN]
    cluster.ask(args.program, *train, "--workers", 2, "--out", one)
    bytes_of = lambda out: sorted(out.glob("checkpoint-*.safetensors"))[-1].read_bytes()
    for mpi, library in (("pmix", "Open MPI"), ("pmi2", "gloo"), ("none", "gloo")):
        step = ["srun", f"--mpi={mpi}", "--kill-on-bad-exit=1", "-N2", "-n2", args.program]
        out = cluster.folder / f"out-{mpi}"
        cluster.ask(*step, *train, "--out", out)
        record = json.loads((out / "record.json").read_text())
        check(library in record["communication"]["library"], f"{mpi}: {record['communication']}")
        check(bytes_of(out) == bytes_of(one), f"{mpi}: the checkpoint's bytes are others than one process's")
        out = cluster.folder / f"lost-{mpi}"
        endless = [word if word != "60" else "1000000" for word in TRAIN]
        job = subprocess.Popen([str(word) for word in [*step, *endless, "--out", out]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env=cluster.environment, cwd=cluster.folder)
        cluster.wait_for(lambda: list(out.glob("checkpoint-*.safetensors")), f"a checkpoint with {mpi}")
        os.kill(ranks_of(cluster)[1], signal.SIGKILL)
        said, _ = job.communicate(timeout=90)
        check(job.returncode != 0 and "rank 1 on host n2" in said and "is lost" in said, f"{mpi}: exit {job.returncode}: {said}")
        print(f"srun --mpi={mpi}: {record['communication']['library']}, the bytes of one process; a lost rank is named")


def asked(args, cluster):
    """A job with all that sbatch can be asked for and this cluster has, and a site file; its data are staged."""
    data = cluster.folder / "pictures"
    pictures(data)
    site = cluster.folder / "config/paceline/site.toml"
    site.parent.mkdir(parents=True)
    site.write_text('[sbatch]\naccount = "physics"\npartition = "batch"\nsetup = ["export FROM_SITE=yes", "ulimit -c 0"]\n'
                    f'[data]\npictures = "folder:{data}"\n')
    cluster.environment["XDG_CONFIG_HOME"] = str(cluster.folder / "config")
    out = cluster.folder / "asked"
    text = cluster.ask(args.program, "sbatch", "--nodes", 2, "--workers-per-node", 1, "--memory", "500M", "--qos", "normal", "--name", "asked",
                       "--time", "00:05:00", "--stage", f"{cluster.folder}/stage-$SLURM_JOB_ID", "--slurm", "--comment=from paceline", "--setup", "echo setup $FROM_SITE",
                       "--setup", "export FROM_SITE=typed", "--script", cluster.folder / "asked.sbatch", "--submit", "--", "train", "--data",
                       "pictures,size=16", "--model", "mnist-cnn", "--global-batch", 4, "--epochs", 1, "--threads", 1, "--no-pin", "--out", out)
    job = re.search(r"job (\d+)", text).group(1)
    log = cluster.folder / f"asked-{job}.log"
    cluster.wait_for(lambda: state_of(cluster, job) not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"), "the end of the job", 120)
    said = log.read_text()
    check(state_of(cluster, job) == "COMPLETED", f"{state_of(cluster, job)}:\n{said}")
    about = cluster.ask("scontrol", "show", "job", job)
    check("Account=physics" in about and "MinMemoryNode=500M" in about and "Comment=from paceline" in about, about)
    record = json.loads((out / "record.json").read_text())
    check(f"stage-{job}/pictures" in record["data"]["name"] or f"stage-{job}/pictures" in json.dumps(record["settings"]), f"{record['settings']}")
    site.write_text('[sbatch]\naccount = "physics"\n[launch]\nlr = 0.5\n')
    refused = subprocess.run([args.program, "train", "--steps", "1"], capture_output=True, text=True, env=cluster.environment, cwd=cluster.folder)
    check(refused.returncode == 2 and "site.toml:4: lr" in refused.stderr and "figures" in refused.stderr, refused.stderr)
    del cluster.environment["XDG_CONFIG_HOME"]
    print("a job with account, memory, setup, staged data and a site file; a site file with a learning rate is refused")


def pictures(folder):
    """Two classes of a few tiny PNG images, written by hand: no library is needed."""
    import struct
    import zlib

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    for split, count in (("train", 8), ("test", 4)):
        for label, shade in (("dark", 30), ("light", 220)):
            (folder / split / label).mkdir(parents=True)
            for i in range(count):
                rows = b"".join(b"\0" + bytes((shade + i + x) % 256 for x in range(16 * 3)) for _ in range(16))
                (folder / split / label / f"{i}.png").write_bytes(
                    b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)) +
                    chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


CASES = {case.__name__: case for case in (unlike, asked, scaled, shared, requeued)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="without, all of them")
    args = parser.parse_args()
    args.program = args.program.resolve()
    if why := missing(args.program):
        print(f"skipped: {why}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="paceline-slurm-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.up()
            for case in args.cases or CASES:
                CASES[case](args, cluster)
        finally:
            cluster.down()


if __name__ == "__main__":
    main()
