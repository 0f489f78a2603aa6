#!/usr/bin/env python3
"""Each way of launching that needs no mpirun: the bytes of one process (and of mpirun, where it is there), and a lost rank is named.

    launchers.py here|srun|torchrun|mpich|interface --program build/release/paceline [--processes P]

here      paceline launch --by here: started by launch itself; lost processes are restarted, what is left behind is none
srun      without PMIx: by an srun of this file's own on PATH, which sets the variables that Slurm sets (tests/slurm has a real one)
torchrun  which holds MASTER_PORT itself; by PyTorch's own where that is installed, and by a holder of the port
mpich     an mpiexec of MPICH, by its own MPI
interface paceline launch --by here --interface lo
Ends with 77 and why where what it needs is not there.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launching import check, children, free_port, left_of, need, places, result, run, stop, train_options, wait_for_checkpoint

SRUN = """#!/usr/bin/env python3
import os, subprocess, sys
words = sys.argv[1:]
if "--mpi=list" in words:
    sys.exit(print("MPI plugin types are...\\n\\tnone\\n\\tpmi2") or 0)
tasks = int(next(word for word in words if word.startswith("--ntasks=")).split("=")[1])
program = words[next(i for i, word in enumerate(words) if not word.startswith("-")):]
jobs = [subprocess.Popen(program, env={**os.environ, "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2", "SLURM_PROCID": str(task),
                                       "SLURM_LOCALID": str(task), "SLURM_NODEID": "0", "SLURM_STEP_NUM_TASKS": str(tasks),
                                       "SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_TASKS_PER_NODE": str(tasks),
                                       **({"PMI_RANK": str(task), "PMI_SIZE": str(tasks)} if os.environ.get("FAKE_PMI2") else {})})
        for task in range(tasks)]
codes = [job.wait() for job in jobs]
sys.exit(next((code if code > 0 else 128 - code for code in codes if code), 0))
"""


def same_bytes(args, folder, what, line, more_environment=None, library="gloo"):
    """`line` in front of a training's words gives the losses and the checkpoint of one process, and of mpirun."""
    options = train_options(folder, "--epochs", "2", "--shard", "4" if args.processes == 3 else "6")
    one, many, launched = folder / "one", folder / f"many {what}", folder / "launched"
    if not one.exists():
        code, out, err = run([args.program, *options, "--out", one])
        check(code == 0, f"one process: exit {code}\n{out}{err}")
        if shutil.which("mpirun") and (args.program.parent / "paceline_mpi.so").exists():
            code, out, err = run([args.program, "launch", "--by", "mpirun", "-n", args.processes, "--", *options, "--out", launched])
            check(code == 0, f"mpirun: exit {code}\n{out}{err}")
            check(result(one)[1:] == result(launched)[1:], "mpirun: losses or the checkpoint's bytes differ")
    code, out, err = run([*line, *options, "--out", many], env={**os.environ, **(more_environment or {})})
    check(code == 0, f"{what}: exit {code}\n{out}{err}")
    check(out.count("epoch 1 ") == 1, f"one process speaks for all, but they printed\n{out}")
    check(result(one)[1:] == result(many)[1:], f"{what}: losses or the checkpoint's bytes differ")
    record = result(many)[0]["communication"]
    check(record["processes"] == args.processes and library in record["library"] and what in record["launcher"], f"communication: {record}")
    print(f"{what}: the bytes of one process{' and of mpirun' if launched.exists() else ''}; {record['launcher']}, {record['library']}")


def ranks_below(process):
    """Ids of the processes of the run that `process` has started, in the order of their ranks."""
    found, look = {}, [process]
    while look:
        for child in children(look.pop()):
            try:
                words = dict(word.partition("=")[::2] for word in Path(f"/proc/{child}/environ").read_text().split("\0"))
                program = os.readlink(f"/proc/{child}/exe")
            except OSError:
                continue
            rank = words.get("SLURM_PROCID", words.get("RANK", words.get("PMI_RANK")))
            if program.endswith("/paceline") and rank is not None:
                found[int(rank)] = child  # its guard, a child of its own, is not looked at
            else:
                look.append(child)
    return [found[rank] for rank in sorted(found)]


def lost_is_named(args, folder, what, line, more_environment=None):
    """The last rank and then the first are killed: said in one sentence, soon, and nobody is left."""
    for victim in (args.processes - 1, 0):
        out = folder / f"lost {what} {victim}"
        options = train_options(folder, "--steps", "10000000", "--evaluate-every", "0")
        job = subprocess.Popen([str(word) for word in [*line, *options, "--out", out]], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, **(more_environment or {})})
        try:
            wait_for_checkpoint(out)
            time.sleep(1)
            ranks = ranks_below(job.pid)
            check(len(ranks) == args.processes, f"{len(ranks)} processes run of {args.processes}")
            begin = time.monotonic()
            os.kill(ranks[victim], signal.SIGKILL)
            _, text = job.communicate(timeout=60)
        finally:
            for process in ranks_below(job.pid):
                os.kill(process, signal.SIGKILL)
            stop(job)
        seconds = time.monotonic() - begin
        said = [one for one in text.splitlines() if one.startswith("paceline: rank")]
        check(job.returncode != 0 and seconds < 30, f"{what}: exit {job.returncode} after {seconds:.1f} s: {text}")
        check(len(said) == 1 and f"rank {victim} on host" in said[0] and "is lost" in said[0] and "of step" in said[0],
              f"{what}: rank {victim} killed, and it was said: {text}")
        left = left_of(ranks)
        check(not left, f"processes {left} are left behind")
        print(f"{what}: rank {victim} killed, all ended after {seconds:.1f} s with {job.returncode}: {said[0]}")


def here(args, folder):
    launch = [args.program, "launch", "--by", "here", "-n", args.processes]
    same_bytes(args, folder, "paceline launch", [*launch, "--"])
    lost_is_named(args, folder, "paceline launch", [*launch, "--"])

    # Without mpirun it is what launch does by itself.
    code, out, err = run([args.program, "launch", "-n", 2, "--print", "--", "train"], env={**os.environ, "PATH": str(folder)})
    check(code == 0 and "MASTER_ADDR=127.0.0.1" in out and "mpirun" not in out, f"exit {code}: {out}{err}")

    # Whatever the user's environment holds of another launcher: the processes are started once.
    code, out, err = run([args.program, "launch", "--by", "here", "-n", 2, "--", *train_options(folder, "--steps", "2"), "--out", folder / "set"],
                         seconds=60, env={**os.environ, "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"})
    check(code == 0 and out.count("for rank in") == 1, f"RANK and WORLD_SIZE were set before: exit {code}: {out[:2000]}{err}")

    # Restarted after a loss, with the weights of a run that nobody disturbed.
    options = train_options(folder, "--steps", "2000", "--evaluate-every", "0")
    whole, again = folder / "whole", folder / "again"
    code, out, err = run([args.program, *options, "--workers", args.processes, "--out", whole])
    check(code == 0, f"exit {code}\n{out}{err}")
    job = subprocess.Popen([str(word) for word in [*launch, "--restarts", "2", "--", *options, "--out", again]],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_checkpoint(again)
        os.kill(ranks_below(job.pid)[-1], signal.SIGKILL)
        out, err = job.communicate(timeout=120)
    finally:
        stop(job)
    check(job.returncode == 0 and err.count("paceline: restart 1 of 2") == 1, f"restarted: exit {job.returncode}\n{out}{err}")
    check(f"process {args.processes - 1} of the run" in err and "signal 9" in err, f"who ended was to be said: {err}")
    check(result(whole)[1] == result(again)[1], "the restarted training has other bytes")
    print("killed, restarted, finished with the undisturbed bytes")

    # A signal to launch is one to all: they end after their step, with a checkpoint, and nobody is started again.
    out = folder / "stopped"
    options = train_options(folder, "--steps", "10000000", "--evaluate-every", "0")
    job = subprocess.Popen([str(word) for word in [*launch, "--restarts", "2", "--", *options, "--out", out]],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_checkpoint(out)
        ranks = ranks_below(job.pid)
        job.send_signal(signal.SIGTERM)
        said, err = job.communicate(timeout=60)
    finally:
        stop(job)
    check(job.returncode == 143 and "restart" not in err, f"stopped: exit {job.returncode}\n{said}{err}")
    check(result(out)[0]["status"] == "interrupted" and not left_of(ranks), "stopped, and not as it should")

    # A wrong option: said once, ended at once with its code.
    begin = time.monotonic()
    code, _, err = run([*launch, "--", *train_options(folder, "--global-batch", "7")])
    check(code == 2 and err.count("paceline: ") == 1 and time.monotonic() - begin < 20, f"usage: exit {code}: {err}")
    print("stopped by a signal, and refused for a wrong option, as one process would be")


def srun(args, folder):
    tools = folder / "tools"
    tools.mkdir()
    (tools / "srun").write_text(SRUN)
    (tools / "srun").chmod(0o755)
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    line = ["srun", "--mpi=none", f"--ntasks={args.processes}", args.program]
    line[0] = tools / "srun"
    same_bytes(args, folder, "srun", line, path)
    lost_is_named(args, folder, "srun", line, path)
    code, out, err = run([*line, "doctor", "--no-measure"], env={**os.environ, **path, "FAKE_PMI2": "1"})
    check(code == 0 and "joined by gloo" in out, f"pmi2: exit {code}\n{out}{err}")
    # Inside an allocation launch takes srun by itself, with as many processes as there are tasks.
    job = {**path, "SLURM_JOB_ID": "4711", "SLURM_NTASKS": str(args.processes)}
    code, out, err = run([args.program, "launch", "--", "doctor", "--no-measure"], env={**os.environ, **job})
    check(code == 0 and f"srun --mpi=none --kill-on-bad-exit=1 --ntasks={args.processes} " in out and "joined by gloo" in out,
          f"launch: exit {code}\n{out}{err}")
    code, _, err = run([*line, "doctor"], env={**os.environ, **path, "SLURM_DISTRIBUTION": "arbitrary"})
    check(code != 0 and "MASTER_ADDR" in err and "arbitrary" in err, f"arbitrary: exit {code}: {err}")
    print("launch inside an allocation, pmi2's variables, an arbitrary distribution")


def torchrun(args, folder):
    """Its agent listens at MASTER_PORT, and its variables say so."""
    with socket.socket() as held:
        held.bind(("0.0.0.0", 0))
        held.listen()
        port = held.getsockname()[1]
        jobs = []
        out = folder / "held"
        options = train_options(folder, "--epochs", "2", "--shard", "4" if args.processes == 3 else "6")
        cores = sorted(os.sched_getaffinity(0))
        for rank, place in enumerate(places(args.processes)):
            place = {**place, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0",
                     "TORCHELASTIC_USE_AGENT_STORE": "True", "LOCAL_WORLD_SIZE": str(args.processes)}
            jobs.append(subprocess.Popen([str(word) for word in [args.program, *options, "--out", out]], env=place, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         preexec_fn=lambda core=cores[rank % len(cores)]: os.sched_setaffinity(0, {core})))
        try:
            said = [job.communicate(timeout=120) for job in jobs]
        finally:
            for job in jobs:
                job.kill()
        check([job.returncode for job in jobs] == [0] * args.processes, f"a held port: {said}")
        there = result(out)[0]["environment"]["cores"]
        check(there == min(args.processes, len(cores)), f"a core each for {args.processes} processes, and the record has {there}")
        print(f"port {port} was held, and they met behind it")
    if subprocess.run([sys.executable, "-c", "import torch.distributed.run"], capture_output=True).returncode != 0:
        print("PyTorch is not there: torchrun itself is left out (Debian: python3-torch)")
        return
    port = free_port()
    # Standard output by way of files: PyTorch 1.13 without any on Python 3.11 fails before it starts a process.
    line = [sys.executable, "-m", "torch.distributed.run", "--redirects", "1", "--tee", "1", "--log_dir", folder / "logs", "--nproc_per_node", args.processes, "--nnodes", "1", "--master_addr",
            "127.0.0.1", "--master_port", port, "--no_python", args.program]
    same_bytes(args, folder, "torchrun", line)
    check(result(folder / "held")[1:] == result(folder / "one")[1:], "a held port: losses or the checkpoint's bytes differ")
    lost_is_named(args, folder, "torchrun", line)


def mpich(args, folder):
    """By its own MPI, and by TCP where MASTER_ADDR is set."""
    need(args, "paceline_mpich.so", "libmpich-dev")
    mpiexec = shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra")
    if mpiexec is None:
        sys.exit(print("skipped: there is no mpiexec of MPICH (Debian: mpich)") or 77)
    line = [mpiexec, "-n", args.processes, args.program]
    same_bytes(args, folder, "mpiexec", line, library="MPICH")
    port = free_port()
    code, out, err = run([*line, "doctor", "--no-measure"], env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
    check(code == 0 and "joined by gloo" in out, f"MASTER_ADDR: exit {code}\n{out}{err}")
    lost_is_named(args, folder, "mpiexec", line)
    # By TCP too, where the processes do not speak with mpiexec.
    lost_is_named(args, folder, "mpiexec, MASTER_ADDR", line, {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})


def interface(args, folder):
    """The loopback's name is everywhere the same; that of no interface is refused before anything is started."""
    launch = [args.program, "launch", "--by", "here", "-n", args.processes, "--interface"]
    same_bytes(args, folder, "paceline launch", [*launch, "lo", "--"])
    code, _, err = run([*launch, "ib7", "--", "doctor"])
    check(code == 2 and err.count("paceline:") == 1 and "it has " in err and "lo" in err, f"ib7: exit {code}: {err}")
    # By mpirun too, and where each process is told alone.
    if shutil.which("mpirun") and (args.program.parent / "paceline_mpi.so").exists():
        code, out, err = run([args.program, "launch", "--by", "mpirun", "-n", 2, "--interface", "lo", "--", "doctor", "--no-measure"])
        check(code == 0 and "btl_tcp_if_include lo" in out, f"mpirun: exit {code}\n{out}{err}")
    jobs = [subprocess.Popen([str(args.program), "doctor", "--no-measure", "--interface", name], stderr=subprocess.PIPE, text=True,
                             stdout=subprocess.DEVNULL, env=place)
            for name, place in zip(("lo", "ib7"), places(2))]
    try:
        _, err = jobs[1].communicate(timeout=30)
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    check(jobs[1].returncode == 5 and "no network interface of that name" in err, f"one without it: exit {jobs[1].returncode}: {err}")
    print("--interface lo by launch, mpirun and RANK; one that is not there is named with those that are")


CASES = {case.__name__: case for case in (here, srun, torchrun, mpich, interface)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    args.program = args.program.resolve()
    need(args, "paceline_gloo.so", "libgloo-dev")
    with tempfile.TemporaryDirectory(prefix="paceline-launchers-") as folder:
        os.chdir(folder)  # what has no --out
        os.environ["PACELINE_CACHE"] = folder  # the kernels that were found fastest are every run's
        CASES[args.case](args, Path(folder))


if __name__ == "__main__":
    main()
