#!/usr/bin/env python3
"""Real mpirun with 1 to 4 processes on this machine, oversubscribed where it has fewer cores: every collective right for
counts 0, 1, prime and large, with 1 and with 2 workers in each process.

    ranks.py --runner .../ranks_run --module .../paceline_mpi.so --processes P

Ends with 77 and why where mpirun or the module is not there.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", type=Path, required=True)
    parser.add_argument("--module", type=Path, required=True)
    parser.add_argument("--processes", type=int, required=True)
    args = parser.parse_args()
    missing = None
    if not shutil.which("mpirun"):
        missing = "there is no mpirun (Debian: openmpi-bin)"
    elif not args.module.exists():
        missing = "the tree was built without MPI (Debian: libopenmpi-dev)"
    if missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    line = ["mpirun", "--quiet", "--oversubscribe", "--bind-to", "none", "-np", str(args.processes)]
    if os.getuid() == 0:
        line.append("--allow-run-as-root")
    for local in (1, 2):
        done = subprocess.run([*line, args.runner, args.module.parent, str(local)], capture_output=True, text=True,
                              timeout=240)
        if done.returncode != 0:
            sys.exit(f"FAILED: {local} workers a process: exit {done.returncode}\n{done.stdout}{done.stderr}")
        print(done.stdout.strip())


if __name__ == "__main__":
    main()
