#!/usr/bin/env python3
"""What ./x build does about the packages of several processes: installed where they can be had; where not, said once, and the program is
built without; built in once they are there. And what one sees while it builds: a few lines of progress, each warning, all of it in the log.
Nothing is installed or compiled: apt-get, cmake and the others are stand-ins."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {
    # Which packages are installed, a line each in the file `installed`.
    "dpkg-query": 'for name in "$@"; do grep -qx -- "$name" installed && echo "$name installed"; done; exit 1',
    "apt-get": 'echo "apt-get $*" >>log; case "$*" in *" update"*) exit $(cat update);; esac; for word in "$@"; do echo "$word" >>installed; done',
    # A build file with a module for each development package that is there.
    "cmake": 'echo "cmake $*" >>log; mkdir -p build/release; : >build/release/build.ninja; for name in mpi gloo; do '
             'grep -q "lib.*$name-dev" installed && echo "build paceline_$name.so" >>build/release/build.ninja; done; '
             'for word in "$@"; do case $word in -D*=*) echo "${word#-D}" | sed "s/=/:X=/" >>build/release/CMakeCache.txt;; esac; done; true',
    # 200 files, with a warning; it fails where the file `broken` is.
    "ninja": 'echo "ninja $*" >>log; for i in $(seq 200); do echo "[$i 200 $i.5] Building CXX object '
             'src/CMakeFiles/paceline_report.dir/$i.cc.o"; done; echo "x.cc:3: warning: unused"; [ ! -e broken ]',
    "npm": "exit 0",
    "node": "echo v20.0.0",
    "id": "echo 0",
}


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def main():
    with tempfile.TemporaryDirectory(prefix="paceline-x-") as name:
        folder = Path(name)
        for file in ("x", "packages.txt"):
            shutil.copy2(ROOT / file, folder / file)
        (folder / "web/node_modules").mkdir(parents=True)
        (folder / "web/node_modules/.package-lock.json").write_text("")
        tools = folder / "tools-of-test"
        tools.mkdir()
        for tool, body in TOOLS.items():
            (tools / tool).write_text("#!/bin/bash\n" + body + "\n")
            (tools / tool).chmod(0o755)
        sections, section = {}, ""
        for line in (ROOT / "packages.txt").read_text().splitlines():
            line = line.partition("#")[0].strip()
            if line.startswith("["):
                section = line.strip("[]")
            elif line:
                sections.setdefault(section, []).append(line)
        (folder / "installed").write_text("\n".join(sections["build"]) + "\n")

        def built(update):
            (folder / "update").write_text(str(update))
            (folder / "log").write_text("")
            done = subprocess.run(["./x", "build"], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
            check(done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}")
            return done.stdout + done.stderr, (folder / "log").read_text()

        said, log = built(update=1)  # no network
        check("going on without" in said and "libgloo-dev" in said and "ninja" in log, f"without them: {said}{log}")
        said, log = built(update=1)
        check("going on without" not in said and "apt-get" not in log and "cmake" not in log, f"asked for again: {said}{log}")
        with (folder / "installed").open("a") as installed:  # by hand, one of them
            installed.write("libgloo-dev\n")
        said, log = built(update=1)
        check("cmake" in log, f"what was installed by hand was to be built in: {said}{log}")
        check(not built(update=1)[1].count("cmake"), "configured each time")
        (folder / "build/release/without-processes").unlink()
        said, log = built(update=0)
        check(all(package in log for package in sections["processes"] if package != "libgloo-dev") and "cmake" in log, f"{said}{log}")
        check("paceline_mpi.so" in (folder / "build/release/build.ninja").read_text(), "MPI is not built in")
        said, log = built(update=0)
        check("apt-get" not in log and "cmake" not in log, f"all is there, and it did: {log}")
        check(said.count("\n") <= 15, f"{said.count(chr(10))} lines while it builds:\n{said}")
        check("building: 50 % (100 of 200), about 2 min left, now report" in said and "x.cc:3: warning: unused" in said, said)
        kept = (folder / "build/release/build.log").read_text()
        check(all(f"/{i}.cc.o" in kept for i in range(1, 201)) and "unused" in kept, "the log has not all of it")
        (folder / "broken").write_text("")
        done = subprocess.run(["./x", "build"], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
        check(done.returncode == 1 and "the build failed" in done.stderr and "unused" in done.stdout, f"a failing build: {done}")
    print("packages of several processes: had, not had, and had later; progress of a build")


if __name__ == "__main__":
    main()
