"""A Slurm of two nodes on this machine, in a directory of its own, for as long as a test takes; and what its jobs are asked."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

TOOLS = {"munged": "munge", "mungekey": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm",
         "srun": "slurm-wlm", "mpirun": "openmpi-bin", "unshare": "util-linux"}


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
            # A host name of its own each, since a node is a host name to the program: two nodes, not one. And the names of both
            # have addresses there, as on a cluster: without PMIx the processes meet at one of them.
            (own / "hosts").write_text("127.0.0.1 localhost n1 n2\n" + Path("/etc/hosts").read_text())
            self.start("unshare", "--uts", "--mount", "sh", "-c", f"mount --bind {own / 'hosts'} /etc/hosts && hostname {node} && "
                       f"exec slurmd -D -N {node} -f {own / 'slurm.conf'}")
        self.wait_for(lambda: self.ask("sinfo", "-h", "-o", "%T").split() in (["idle"], ["idle", "idle"]), "two idle nodes")

    def ask(self, *words, fails=False):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300,
                              env=self.environment, cwd=self.folder)
        if not fails and done.returncode != 0:
            check(False, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout

    def wait_for(self, holds, what, seconds=60):
        until = time.monotonic() + seconds
        while not holds():
            if time.monotonic() >= until:  # logs are read only then: files come and go beside running steps
                check(False, f"{what} did not come within {seconds} s\n{self.logs()}")
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    check(False, f"{daemon.args} ended\n{self.logs()}")
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


def states_of(cluster, job):
    """Of each job of an array, or of the one."""
    return re.findall(r"JobState=(\S+)", cluster.ask("scontrol", "show", "job", job))


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


def missing(program):
    """Why no cluster can be brought up here, None where one can."""
    os.environ["PATH"] += ":/usr/sbin"  # where Debian has the daemons
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            return f"there is no {tool} (Debian: {package})"
    if os.getuid() != 0:
        return "slurmd needs to be root"
    if subprocess.run(["unshare", "--uts", "--mount", "true"], capture_output=True).returncode != 0:
        return "namespaces (unshare --uts --mount) are not allowed here"
    if not (program.parent / "paceline_mpi.so").exists():
        return "the program was built without MPI (Debian: libopenmpi-dev)"
    return None
