"""Cases of ranks.py: processes that are there and do not go on: who says it and when, and that nobody waits for ever."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from launching import (check, children_of, left_of, mpirun, need, places, ranks_of, result, run, runs, stop, train_options,
                       wait_for_checkpoint)

END_WITHIN = 4  # s, which a process that hangs has after a failure, instead of 20
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000


def end_soon():
    """From here on a process that does not end is ended after END_WITHIN, so that nobody waits for the program's 20 s."""
    os.environ["PACELINE_END_WITHIN"] = str(END_WITHIN)


def stopped(args, folder):
    """SIGSTOP: the process is there and its connection too, but nothing comes of it any more. Said within 5 s."""
    for victim in (args.processes - 1, 0):
        out = folder / f"stopped{victim}"
        words = [args.program, "launch", "-n", args.processes, "--",
                 *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--deadline", "6"), "--out", out]
        job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        heard = []  # (seconds, line)
        processes = []
        try:
            wait_for_checkpoint(out)
            time.sleep(1.5)
            processes = ranks_of(job, args.processes)
            begin = time.monotonic()
            os.kill(processes[victim], signal.SIGSTOP)
            reader = threading.Thread(target=lambda: heard.extend((time.monotonic() - begin, line) for line in job.stderr))
            reader.start()
            job.wait(timeout=60)
            seconds = time.monotonic() - begin
            reader.join(timeout=10)
        finally:
            for process in processes:
                if runs(process):
                    os.kill(process, signal.SIGKILL)
            stop(job)
        said = "".join(line for _, line in heard)
        check(job.returncode == 5, f"exit {job.returncode}: {said}")
        check(seconds < 45, f"all ended only after {seconds:.1f} s: {said}")  # 6 s, and what mpirun waits before it uses force
        # Process 0 says it, of itself the next.
        silent = [when for when, line in heard if f"from rank {victim} on host" in line and "no heartbeat for" in line]
        check(len(silent) == 1 and 1 < silent[0] < 5, f"no heartbeats for 5 s, and it was said: {heard}")
        check(any(re.search(rf"rank {victim} .* is lost: it has sent no heartbeat for [5-6] s", line) for _, line in heard),
              f"given up at the deadline: {said}")
        print(f"rank {victim} stopped: said after {silent[0]:.1f} s, all ended after {seconds:.1f} s")


def left(args, folder):
    """A process that is stopped, and that nobody is left to give up: on its way out, where mpirun would wait for it for ever, and
    in the middle of a run that no launcher started. It is ended a while after the deadline, and nothing is left behind."""
    library = args.runner.parent / "libstop_at_exit.so"
    if not library.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    need(args, "paceline_gloo.so", "libgloo-dev")
    end_soon()
    victim, limits = args.processes - 1, ("--deadline", "4")
    alone, out = folder / "alone", folder / "out"
    words = [str(word) for word in [args.program, *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", *limits),
                                    "--out", alone]]
    jobs = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=place)
            for place in places(args.processes)]
    try:
        wait_for_checkpoint(alone)
        os.kill(jobs[victim].pid, signal.SIGSTOP)
        begin = time.monotonic()
        words = mpirun(args.processes) + [args.program, *train_options(folder, "--steps", "8", *limits), "--out", out]
        code, text, err = run(words, env={**os.environ, "LD_PRELOAD": str(library), "STOP_AT_EXIT": str(victim)})
        seconds = time.monotonic() - begin
        said = [job.communicate(timeout=60)[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    check(code != 0 and f"process {victim} on host" in err and f"has been stopped for {4 + END_WITHIN} s" in err, f"exit {code}: {text}{err}")
    check(result(out)[0]["status"] == "complete", "its record was complete before")
    check(4 + END_WITHIN < seconds < 45, f"mpirun ended after {seconds:.1f} s: {err}")
    codes = [job.returncode for job in jobs]
    check(codes == [5] * victim + [-signal.SIGKILL], f"exit {codes}: {said}")
    check(f"has been stopped for {4 + END_WITHIN} s" in said[victim], f"{said}")
    print(f"stopped on its way out: ended after {seconds:.1f} s: {err.strip().splitlines()[0]}")


def is_locked_out(process, held):
    """Whether another thread of `process` waits for a lock (futex 0x80, not a condition's 0x189): `held` has it."""
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            call = (task / "syscall").read_text().split()
        except OSError:
            continue  # it has ended since
        if int(task.name) != held and call[0] == "202" and call[2:4] == ["0x80", "0x2"]:
            return True
    return False


def ticks_of_threads(process):
    """{thread: ticks of the clock that it has computed}"""
    ticks = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            ticks[int(task.name)] = sum(map(int, (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            pass  # it has ended since
    return ticks


def hold(process, waiting):
    """Stops the thread of `process` that computes most, and no other, while it computes or while it waits: as one that hangs in a
    read of a dead disk, or that misses what it waits for. Its id. Never in the few instructions for which it holds a lock (one hold
    in fifty of these small models): no read and no wait is there, and nobody could say anything."""
    libc = ctypes.CDLL(None, use_errno=True)
    for _ in range(10):
        # Over the last second: since the start the main thread may have computed most, which planned and now waits. Beside many other
        # programs a second may show too few ticks to tell threads apart: then the next one decides.
        before = ticks_of_threads(process)
        time.sleep(1)
        ticks = {thread: ticks - before.get(thread, 0) for thread, ticks in ticks_of_threads(process).items()}
        thread = max(ticks, key=ticks.get)
        for _ in range(600):
            for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
                if libc.ptrace(request, thread, None, None) != 0:
                    print(f"skipped: a thread of another process cannot be stopped here: {os.strerror(ctypes.get_errno())}")
                    sys.exit(77)
            os.waitpid(thread, WALL)
            # Who waits for others is inside a call of the system: futex, nanosleep or sched_yield.
            call = int(Path(f"/proc/{process}/task/{thread}/syscall").read_text().split()[0])
            if call in (202, 35, 230, 24) if waiting else call == -1:
                # Whoever wants that lock has to come to it, which takes a while beside many other programs.
                for _ in range(4):
                    time.sleep(0.25)
                    if is_locked_out(process, thread):
                        break
                else:
                    return thread
            libc.ptrace(PTRACE_DETACH, thread, None, None)
            time.sleep(0.003)
    raise AssertionError(f"no thread of process {process} was found that {'waits' if waiting else 'computes'}")


def collect(held):
    """A thread that is held stays, and so does its process, until who holds it has collected it."""
    try:
        os.waitpid(held, os.WNOHANG | WALL)
    except ChildProcessError:
        pass  # it is collected, or has not ended


def wait_for_ends(jobs, held, until):
    """Until all have ended, or `until`."""
    while any(job.poll() is None for job in jobs) and time.monotonic() < until:
        time.sleep(0.1)
        collect(held)


def hung(args, folder):
    """A thread that computes, or that waits for the others, hangs while its process's heartbeats go on. Said within 5 s, given up at
    the deadline; without a launcher nobody would end that process, which cannot join its thread: it ends itself."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    end_soon()
    last = args.processes - 1
    for launched, victim, waiting, more in ((True, last, False, []), (False, last, False, []), (False, 0, False, []),
                                            (True, last, True, []), (True, last, True, ["--no-shared-memory"])):
        out = folder / f"hung{launched}{victim}{waiting}{len(more)}"
        words = [args.program, *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--checkpoint-every", "3s", "--deadline", "6",
                                              "--data", "synthetic,train=24000,test=60"), "--out", out,  # long epochs: few records
                 *more, *(["--emulate-straggler", "rank=1,slower=4x"] if waiting else [])]  # who is waited for a lot
        lines = [(mpirun(args.processes) + words, None)] if launched else [(words, place) for place in places(args.processes)]
        jobs, heard = [], []  # heard: (seconds, line)
        try:
            for line, place in lines:
                jobs.append(subprocess.Popen([str(word) for word in line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                             text=True, env=place))
            wait_for_checkpoint(out)
            time.sleep(1.5)
            process = children_of(jobs[0].pid)[victim] if launched else jobs[victim].pid
            thread = hold(process, waiting)  # which may take seconds to find it so, beside other tests
            begin = time.monotonic()
            readers = [threading.Thread(target=lambda job=job: heard.extend((time.monotonic() - begin, line) for line in job.stderr))
                       for job in jobs]
            for reader in readers:
                reader.start()
            wait_for_ends(jobs, thread, begin + 60)
            seconds = time.monotonic() - begin
        finally:
            for job in jobs:
                stop(job)
        for reader in readers:
            reader.join(timeout=10)
        said = "".join(line for _, line in heard)
        codes = [job.returncode for job in jobs]
        check(seconds < 45, f"all ended only after {seconds:.1f} s: {said}")
        check(all(code == 5 for code in codes) or (launched and codes[0] != 0), f"exit {codes}: {said}")
        word = [when for when, line in heard if "the others have waited" in line and f"rank {victim} on host" in line
                and "of step" in line]
        check(word and word[0] < 5, f"who is waited for was to be said within 5 s: {heard}")
        late = [line for _, line in heard if f"rank {victim} on host" in line and "within 6 s" in line]
        check(len(late) == 1, f"given up at the deadline, and said once: {said}")
        check(launched or f"process {victim} on host" in said, f"it ends itself: {said}")
        check(not left_of([process], lambda: collect(thread)), f"process {process} is left behind")
        print(f"{'mpirun' if launched else 'no launcher'}{', in a wait' if waiting else ''} {more}: said after {word[0]:.1f} s, all ended after {seconds:.1f} s\n{said.strip()}")


def worker(args, folder):
    """One of the workers that are threads of one process hangs while it computes: named within 5 s with its place, alone and among
    processes, and given up at the deadline; the process, which cannot join that thread, ends itself where no launcher does."""
    end_soon()
    options = [*train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--checkpoint-every", "3s", "--deadline", "7",
                              "--data", "synthetic,train=24000,test=60")]  # long epochs: no thread writes records all the time
    for processes in (1, 2):
        out = folder / f"worker{processes}"
        words = [str(word) for word in [*(mpirun(2) if processes == 2 else []), args.program, *options, "--workers", 2 * processes,
                                        "--out", out]]
        job = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        heard = []  # (seconds, line)
        try:
            wait_for_checkpoint(out)
            time.sleep(1.5)
            process = children_of(job.pid)[-1] if processes == 2 else job.pid
            thread = hold(process, waiting=False)
            begin = time.monotonic()
            reader = threading.Thread(target=lambda: heard.extend((time.monotonic() - begin, line) for line in job.stderr))
            reader.start()
            wait_for_ends([job], thread, begin + 60)
            seconds = time.monotonic() - begin
        finally:
            stop(job)
        reader.join(timeout=10)
        said = "".join(line for _, line in heard)
        check(seconds < 45 and job.returncode != 0, f"exit {job.returncode} after {seconds:.1f} s: {said}")
        ranks = f"[{2 * processes - 2}{2 * processes - 1}]"
        name = rf"rank {ranks} on host \S+ \(last in [a-z ]+ of step \d+\)"
        word = [(when, line) for when, line in heard if re.search(rf"the others have waited \d s for {name}", line)]
        check(len(word) == 1 and word[0][0] < 5, f"the one worker was to be named within 5 s: {heard}")
        check(re.search(rf"{name} did not enter .* within 7 s", said), f"given up at the deadline: {said}")
        check(processes == 2 or f"has not ended {END_WITHIN} s after" in said, f"it ends itself: {said}")
        check(not left_of([process], lambda: collect(thread)), f"process {process} is left behind")
        print(f"{processes} process(es): said after {word[0][0]:.1f} s, all ended after {seconds:.1f} s\n{said.strip()}")


def say_of_hang(args, line, place, whole=False):
    """What is said on standard error when one process hangs at $HANG_AT of `place`, as (seconds after that, line), and mpirun's exit
    code: up to the first word, or, where `whole`, to the end."""
    library = args.runner.parent / "libhang_at.so"
    if not library.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    since = Path(place["HANG_SINCE"])
    job = subprocess.Popen([str(word) for word in line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "LD_PRELOAD": str(library), **place})
    until = time.time() + 60
    heard = []  # (time, line)
    reader = threading.Thread(target=lambda: heard.extend((time.time(), line) for line in job.stderr))
    reader.start()
    processes = []
    try:
        while job.poll() is None and time.time() < until and (whole or not heard):
            time.sleep(0.05)
            processes = children_of(job.pid) or processes
    finally:
        for process in [] if whole else processes:  # one that is stopped does not end when it is asked to
            if runs(process):
                os.kill(process, signal.SIGKILL)
        try:
            job.wait(timeout=10)
        except subprocess.TimeoutExpired:
            stop(job)
    reader.join(timeout=10)
    check(since.exists(), f"nobody has come to {place['HANG_AT']}: {heard}")
    return [(when - since.stat().st_mtime, line.strip()) for when, line in heard], job.returncode


def outside(args, folder):
    """A process that hangs before its first step, or in its last file: named within 5 s, in whatever it is; and one that only takes
    long is not."""
    last, before = args.processes - 1, folder / "before"
    options = train_options(folder, "--steps", "8", "--evaluate-every", "0")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--out", before])
    check(code == 0, f"exit {code}\n{out}{err}")
    again = [*options, "--steps", "12", "--resume", before]
    comm = ["comm", "--sizes", "1K:1K", "--repeats", "2", "--deadline", "1"]
    for turn, (victim, file, phase, words, busy) in enumerate((
            (last, "model.toml", "the planning of the run", options, None), (0, ".txt.lock", "the measuring of kernels", [*options, "--measured-kernels"], None),
            (0, "checkpoint-", "the reading of the checkpoint", again, None), (0, "checkpoint-", "", again, "6"),
            (0, "record.json", "the measuring of collectives", comm, None))):
        place = {"HANG_RANK": str(victim), "HANG_AT": file, "HANG_SINCE": str(folder / f"since{turn}"),
                 "PACELINE_CACHE": str(folder / f"cache{turn}"), **({"BUSY_S": busy} if busy else {})}
        line = mpirun(args.processes) + [args.program, *words, "--out", folder / f"out{turn}"]
        heard, code = say_of_hang(args, line, place, whole=words is comm)
        word = [(when, line) for when, line in heard if "the others have waited" in line]
        if busy:
            check(not word and code == 0, f"it computed for {busy} s, and it was said: exit {code}, {heard}")
            print(f"rank {victim} computes for {busy} s before it opens {file}: nothing is said")
            continue
        check(len(word) == 1 and word[0][0] < 5 and f"rank {victim} on host" in word[0][1] and f"(last in {phase})" in word[0][1],
              f"rank {victim} hangs where it opens {file}, and it was said: {heard}")
        print(f"rank {victim}: said after {word[0][0]:.1f} s: {word[0][1]}")
    check(code == 5 and any("has done nothing for 10 s" in line for _, line in heard), f"exit {code}: {heard}")


def write_image(path, shade):
    """A grey PPM of 8x8 pixels. (Of PNG files some are read before the run begins, to know how many bits they have.)"""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6 8 8 255\n" + bytes([shade]) * 192)


def standstill(args, folder):
    """The disk of the images stops to answer, and with that all workers at once: nobody waits in a collective. Said within 5 s with all
    ranks and their places, given up at the deadline, nobody left; of one process and of several."""
    end_soon()
    for number in range(32):
        write_image(folder / f"images/{'train' if number < 24 else 'test'}/{number % 2}/{number}.ppm", 8 * number)
    for processes, workers in ((1, 1), (1, 2), (2, 4)):
        options = [*train_options(folder, "--steps", "8", "--deadline", "6", "--workers", workers), "--global-batch", "8", "--data",
                   f"folder:{folder}/images,size=8"]
        line = [*(mpirun(processes) if processes > 1 else []), args.program, *options, "--out", folder / f"out{workers}"]
        begin = time.monotonic()
        heard, code = say_of_hang(args, line, {"HANG_AT": "images/train/", "HANG_SINCE": str(folder / f"since{workers}")}, whole=True)
        seconds = time.monotonic() - begin
        said = "\n".join(line for _, line in heard)
        names = [f"rank {rank}" for rank in range(workers)] if processes == 1 else ["ranks 0 to 1", "ranks 2 to 3"]
        names = ", ".join(rf"{name} on host \S+ \(last in waiting for data of step 1\)" for name in names)
        word = [when for when, line in heard
                if re.search(rf"no rank has done anything for 3 s, .*: {names}; the run is given up after 6 s$", line)]
        check(len(word) == 1 and word[0] < 5, f"all hang, and it was said: {heard}")
        check(re.search(rf"no rank has done anything for 6 s, .*: {names}; the run is given up", said), f"given up at the deadline: {said}")
        check(re.search(f"has not ended {END_WITHIN} s after .*; it is ended", said), f"it ends itself: {said}")
        check(code == 5 or (processes > 1 and code != 0), f"exit {code}: {said}")
        check(seconds < 45, f"all ended only after {seconds:.1f} s: {said}")
        print(f"{workers} worker(s) in {processes} process(es): said after {word[0]:.1f} s, all ended after {seconds:.1f} s\n{said}")


def meeting(args, folder):
    """A process that hangs or is stopped before the heartbeats: inside MPI's own start, and between that and its connection to the
    others. Named within 5 s by the lowest process that is there."""
    last, ours = args.processes - 1, "MPI_Comm_free"
    for turn, (victim, at, how, stops) in enumerate(((last, "openmpi-mca-params.conf", "does nothing", False),
                                                     (last, ours, "does nothing", False), (0, ours, "does nothing", False),
                                                     (last, ours, "is stopped", True), (0, ours, "is stopped", True))):
        place = {"HANG_RANK": str(victim), "HANG_AT": at, "HANG_SINCE": str(folder / f"since{turn}"), **({"STOP": "1"} if stops else {})}
        heard, _ = say_of_hang(args, mpirun(args.processes) + [args.program, *train_options(folder, "--steps", "8")], place)
        heard = [(when, line) for when, line in heard if "have not met" in line]
        check(len(heard) == 1 and heard[0][0] < 5 and re.search(rf"process {victim} on host \S+ \(pid \d+\) {how}", heard[0][1]),
              f"process {victim} {how} at {at}, and it was said: {heard}")
        print(f"process {victim} at {at}: said after {heard[0][0]:.1f} s: {heard[0][1]}")


def absent(args, folder):
    """A process that hangs before it has met the others: nobody can be told by MPI, and yet all end."""
    last = args.processes - 1
    script = f'if [ $OMPI_COMM_WORLD_RANK = {last} ]; then kill -STOP $$; fi; exec "$@"'
    words = [args.program, *train_options(folder, "--steps", "10", "--deadline", "5")]
    begin = time.monotonic()
    code, out, err = run(mpirun(args.processes) + ["sh", "-c", script, "sh", *words], cwd=folder)
    seconds = time.monotonic() - begin
    check(code == 5, f"exit {code}\n{out}{err}")
    early, late = [line for line in err.splitlines() if line.startswith("paceline:")]
    missed = f"process {last} on host {os.uname().nodename} has not begun"
    check("have not met" in early and missed in early and "given up after 60 s" in early, f"{err}")
    check("have not met within 60 s" in late and missed in late and "process 0 on host" in late, f"{err}")
    check(seconds < 80, f"{seconds:.0f} s")
    print(f"ended after {seconds:.0f} s: {err.strip()}")


def disk(args, folder):
    """The disk of --out stops to answer in the middle of a run: said within 5 s, given up after ten deadlines, nobody left."""
    library = args.runner.parent / "libdead_disk.so"
    if not library.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    dead, out = folder / "dead", folder / "out"
    words = [args.program, *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--deadline", "5"), "--out", out]
    job = subprocess.Popen([str(word) for word in mpirun(args.processes) + words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, env={**os.environ, "LD_PRELOAD": str(library), "DEAD_DISK": str(dead)})
    try:
        wait_for_checkpoint(out)
        time.sleep(1.5)
        processes = children_of(job.pid)
        begin = time.monotonic()
        dead.touch()
        heard = [(time.monotonic() - begin, line) for line in job.stdout]
        err = job.communicate(timeout=10)[1]
        seconds = time.monotonic() - begin
    finally:
        stop(job)
    check(len(processes) == args.processes, f"{len(processes)} processes run of {args.processes}")
    text = "".join(line for _, line in heard)
    check(job.returncode == 3, f"exit {job.returncode}: {text}{err}")
    word = r"rank 0 on host \S+: record and checkpoint of update \d+ are not written to \S+ after [34] s; this is given up after 50 s"
    (said,) = [when for when, line in heard if re.search(word, line)]
    check(said < 5, f"said within 5 s, and not after {said:.1f} s: {text[-500:]}")
    check("could not be written within 50 s" in text and str(out) in text, f"given up after ten deadlines: {text[-500:]}{err}")
    check(seconds < 110, f"all ended only after {seconds:.1f} s: {err}")
    check(not left_of(processes), "processes are left behind")
    print(f"said after {said:.1f} s, all ended after {seconds:.1f} s: {text.strip().splitlines()[-1]}")
