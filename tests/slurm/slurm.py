#!/usr/bin/env python3
"""A real Slurm of two nodes, brought up on this machine for the length of the test, in a directory of its own.

    slurm.py --program build/release/paceline

A study runs as a job. A job script made by `paceline sbatch` trains across both nodes, loses a process and is requeued, is requeued by Slurm in the
middle, and finishes from its checkpoint with the bytes of a training that nobody disturbed. Ends with 77 and why where Slurm is not installed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOLS = {"munged": "munge", "mungekey": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm",
         "srun": "slurm-wlm", "mpirun": "openmpi-bin"}
TRAIN = ["train", "--model", "mnist-cnn", "--data", "synthetic,train=192,test=48", "--precision", "fp32", "--threads", "1",
         "--global-batch", "48", "--lr", "0.02", "--no-pin", "--epochs", "60"]


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Cluster:
    """Daemons in the foreground, as children: what ends this process ends them."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"),
                            # Both nodes are this machine: they reach each other over its loopback only.
                            "OMPI_MCA_btl_tcp_if_include": "lo", "PACELINE_CACHE": str(folder), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def start(self, *words):
        name = f"{Path(words[0]).name}{len(self.daemons)}"
        with open(self.folder / f"{name}.out", "wb") as out:
            self.daemons.append(subprocess.Popen([str(word) for word in words], stdout=out, stderr=out,
                                                 env=self.environment, start_new_session=True))

    def up(self):
        folder = self.folder
        key, wire = folder / "munge.key", folder / "munge.socket"
        subprocess.run(["mungekey", "--create", "--keyfile", key], check=True)
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={wire}",
                   f"--pid-file={folder / 'munged.pid'}", f"--seed-file={folder / 'munge.seed'}",
                   f"--log-file={folder / 'munged.log'}")
        self.wait_for(lambda: wire.exists(), "munged")
        host = socket.gethostname()
        control, *nodes = free_ports(3)
        text = f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
AuthType=auth/munge
# A requeued job waits until the old run's credentials are void: two minutes, unless they are short-lived.
AuthInfo=socket={wire},cred_expire=5
CryptoType=crypto/munge
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmUser=root
ReturnToService=2
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_min_interval=100000
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={nodes[0]} CPUs=2 RealMemory=2000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={nodes[1]} CPUs=2 RealMemory=2000
PartitionName=batch Nodes=n[1-2] Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:4
"""
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(text)
        self.start("slurmctld", "-D")
        for node in ("n1", "n2"):
            # Two PMIx servers of one machine would take the same directory: each node has its own mpi.conf.
            own = folder / node
            (own / "spool").mkdir(parents=True)
            (own / "pmix").mkdir()
            (own / "slurm.conf").write_text(text)
            (own / "mpi.conf").write_text(f"PMIxCliTmpDirBase={own / 'pmix'}\n")
            self.start("slurmd", "-D", "-N", node, "-f", own / "slurm.conf")
        self.wait_for(lambda: self.ask("sinfo", "-h", "-o", "%T").split() in (["idle"], ["idle", "idle"]), "two idle nodes")

    def ask(self, *words, fails=False):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60,
                              env=self.environment, cwd=self.folder)
        check(fails or done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout

    def wait_for(self, holds, what, seconds=60):
        until = time.monotonic() + seconds
        while not holds():
            check(time.monotonic() < until, f"{what} did not come within {seconds} s\n{self.logs()}")
            for daemon in self.daemons:
                check(daemon.poll() is None, f"{daemon.args} ended\n{self.logs()}")
            time.sleep(0.2)

    def logs(self):
        text = ""
        for path in sorted([*self.folder.rglob("*.log"), *self.folder.glob("*.out")]):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            text += f"--- {path.name}\n" + "\n".join(lines) + "\n"
        return text

    def down(self):
        if (self.folder / "slurm.conf").exists():
            subprocess.run(["scancel", "--user=root"], env=self.environment, capture_output=True, timeout=30)
            time.sleep(1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        # Step daemons outlive their slurmd: the directory in their command line tells them from any other Slurm's.
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and str(self.folder).encode() in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass


def state_of(cluster, job):
    return re.search(r"JobState=(\S+)", cluster.ask("scontrol", "show", "job", job)).group(1)


def restarts_of(cluster, job):
    return int(re.search(r"Restarts=(\d+)", cluster.ask("scontrol", "show", "job", job)).group(1))


def ranks_of(cluster):
    """Process ids of the job's tasks by rank: of this cluster, whose configuration is in their environment, and not the child of
    each that guards it against being stopped."""
    ranks = {}
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or (entry / "exe").resolve().name != "paceline":
                continue
            parent = re.search(r"\nPPid:\s+(\d+)", (entry / "status").read_text()).group(1)
            if Path(f"/proc/{parent}/exe").resolve().name == "paceline":
                continue
            environment = dict(word.partition("=")[::2] for word in (entry / "environ").read_text().split("\0"))
        except OSError:
            continue
        if str(cluster.folder) in environment.get("SLURM_CONF", "") and "SLURM_PROCID" in environment:
            ranks[int(environment["SLURM_PROCID"])] = int(entry.name)
    return ranks


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
    text = cluster.ask(args.program, "sbatch", "--nodes", 2, "--workers-per-node", 1, "--name", "scaled", "--time", "00:10:00",
                       "--script", cluster.folder / "scale.sbatch", "--submit", "--", "scale", "--model", "mnist-cnn", "--data",
                       "synthetic,train=192,test=48", "--precision", "fp32", "--threads", 1, "--no-pin", "--workers", "1,2",
                       "--batches", 8, "--repeats", 1, "--window-steps", 4, "--warmup-steps", 1, "--out", out)
    job = re.search(r"job (\d+)", text).group(1)
    check(re.search(r"queue: [A-Z]+", text) and f"records: {out / 'records'}" in text, f"what sbatch said: {text}")
    log = cluster.folder / f"scaled-{job}.log"
    cluster.wait_for(lambda: state_of(cluster, job) not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"), "the end of the study", 200)
    said = log.read_text()
    check(state_of(cluster, job) == "COMPLETED", f"{state_of(cluster, job)}:\n{said}")
    record = json.loads((out / "records/scale-weak-w2-b8-r0.json").read_text())
    check(record["status"] == "complete" and record["communication"]["processes"] == 2 and
          "srun" in record["communication"]["launcher"], f"{record['status']}: {record['communication']}\n{said}")
    print(f"a study of two cells as a job on two nodes; sbatch said: {re.search(r'queue: .*', text).group(0)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    args = parser.parse_args()
    args.program = args.program.resolve()
    os.environ["PATH"] += ":/usr/sbin"  # where Debian has the daemons
    missing = next((f"there is no {tool} (Debian: {package})" for tool, package in TOOLS.items() if not shutil.which(tool)), None)
    if not missing and os.getuid() != 0:
        missing = "slurmd needs to be root"
    if not missing and not (args.program.parent / "paceline_mpi.so").exists():
        missing = "the program was built without MPI (Debian: libopenmpi-dev)"
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="paceline-slurm-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.up()
            scaled(args, cluster)
            requeued(args, cluster)
        finally:
            cluster.down()


if __name__ == "__main__":
    main()
