"""A case of ranks.py: processes whose GPU does not answer."""

import os
import re
import subprocess
import sys
import threading
import time

from launching import check, need, places


def gpu(args, folder):
    """A call of NCCL or of a GPU that never returns, in one process with two workers and in two processes: who it is and in which
    collective is said, and every process ends with 5, within the deadline and 10 s, though its threads cannot be joined."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    program, deadline = args.runner.parent / "gpu_hangs", 1
    if not program.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    name = r"nccl: rank [01] of 2 \(device [01]\): "
    said_of = {"ncclCommInitRankConfig": f"{name}ncclCommInitRankConfig does not return, in the start, 2 s after it began",
               "ncclAllReduce": f"{name}ncclAllReduce does not return, in all_reduce 1 of 1000 floats, 2 s after it began",
               "ncclCommAbort": f"rank 1 gave up: a link of device 1 is broken.*{name}ncclCommAbort does not return, in ",
               "query": f"{name}a call of the device does not return, in all_reduce 1 of 1000 floats, 2 s after it began"}
    secret = {"PACELINE_SECRET": "a meeting that says nothing before the calls hang"}
    jobs, heard = [], []  # heard: of each job (seconds, line)
    try:
        for call in said_of:
            for processes in (1, args.processes):
                for place in [dict(os.environ)] if processes == 1 else places(processes):
                    place = {**place, **secret, "NCCL_HANGS": call, "LD_LIBRARY_PATH": str(args.runner.parent / "libraries/nccl")}
                    job = subprocess.Popen([str(program), str(2 if processes == 1 else 1), str(deadline)], stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True, env=place)
                    jobs.append((call, processes, job))
        begin = time.monotonic()
        heard = [[] for _ in jobs]

        def read(job, lines):
            lines.extend((time.monotonic() - begin, line) for line in job.stdout)
            job.wait()
            lines.append((time.monotonic() - begin, ""))

        readers = [threading.Thread(target=read, args=(job, lines)) for (_, _, job), lines in zip(jobs, heard)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout=max(0, begin + 60 - time.monotonic()))
    finally:
        for _, _, job in jobs:
            job.kill()
    for number, ((call, processes, job), lines) in enumerate(zip(jobs, heard)):
        said = "".join(line for _, line in lines)
        seconds = lines[-1][0] - lines[0][0]
        check(lines[0][1] == "begins\n" and job.returncode == 5, f"{call}, {processes} processes: exit {job.returncode}: {said}")
        check(seconds < deadline + 10, f"{call}, {processes} processes: ended after {seconds:.1f} s: {said}")
        is_first = processes == 1 or jobs[number - 1][:2] != (call, processes)
        check(re.search(rf"cannot end by itself.*: {name}.* does not return, in .*; it is ended", said), f"why it is ended: {said}")
        check(not is_first or re.search(said_of[call], said, re.DOTALL), f"{call}, {processes} processes: said by the first: {said}")
        print(f"{call}, {processes} processes: ended after {seconds:.1f} s\n{said}")
