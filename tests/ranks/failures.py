"""Cases of ranks.py: processes that are killed, stopped or in error, and what becomes of the others."""

import ctypes
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from launching import (COMMON, MODEL, check, children, children_of, mpirun, need, places, result, run, runs, stop,
                       train_options, wait_for_checkpoint)


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 17, 0x4206, 0x4207, 0x40000000


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
        check(len(said) == 1 and f"rank {victim} on host" in said[0] and "is lost" in said[0]
              and "of step" in said[0], f"rank {victim} killed, and it was said: {text}")
        record = json.loads((out / ("record.json" if victim > 0 else "lost-rank-0.json")).read_text())
        check(record["status"] == "failed" and f"rank {victim}" in record["reason"], record["reason"])
        check(0 <= record["loss"]["detection_s"] < 5 and record["updates_done"] > 0, f"detection: {record['loss']}")
        until = time.monotonic() + 5
        while (left := [process for process in processes if runs(process)]) and time.monotonic() < until:
            time.sleep(0.1)
        check(not left, f"processes {left} are left behind")
        print(f"rank {victim} killed: all ended after {seconds:.1f} s" + (f": {said[0]}" if said else ""))


def stopped(args, folder):
    """SIGSTOP: the process is there and its connection too, but nothing comes of it any more. Said within 5 s."""
    for victim in (args.processes - 1, 0):
        out = folder / f"stopped{victim}"
        words = [args.program, "launch", "-n", args.processes, "--",
                 *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--deadline", "9"), "--out", out]
        job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        heard = []  # (seconds, line)
        processes = []
        try:
            wait_for_checkpoint(out)
            time.sleep(1.5)
            processes = children_of(children(job.pid)[0])
            check(len(processes) == args.processes, f"{len(processes)} processes run of {args.processes}")
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
        check(seconds < 45, f"all ended only after {seconds:.1f} s: {said}")  # 9 s, and what mpirun waits before it uses force
        # Process 0 says it, of itself the next.
        silent = [when for when, line in heard if f"of rank {victim} on host" in line and "nothing has been heard" in line]
        check(len(silent) == 1 and 1 < silent[0] < 5, f"no heartbeats for 5 s, and it was said: {heard}")
        check(any(f"rank {victim}" in line and re.search(r"(within|of it for) 9 s", line) for _, line in heard),
              f"given up at the deadline: {said}")
        print(f"rank {victim} stopped: said after {silent[0]:.1f} s, all ended after {seconds:.1f} s")


def together(args, folder):
    """Processes 0 and 1 killed at once, 0 and all but the last, 1 and 2, and 0 and the last: the lowest that is left names all that
    are gone."""
    last = args.processes - 1
    for victims in ((0, 1), tuple(range(last)), (1, 2), (0, last)):
        out = folder / f"lost{victims}"
        options = train_options(folder, "--steps", "10000000", "--evaluate-every", "0")
        job = subprocess.Popen([str(word) for word in [args.program, "launch", "-n", args.processes, "--", *options, "--out", out]],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_for_checkpoint(out)
            time.sleep(1.5)
            processes = children_of(children(job.pid)[0])
            check(len(processes) == args.processes, f"{len(processes)} processes run of {args.processes}")
            for victim in victims:
                os.kill(processes[victim], signal.SIGSTOP)  # so that the first to die is not told on by the second
            for victim in victims:
                os.kill(processes[victim], signal.SIGKILL)
            text = "".join(job.communicate(timeout=60))
        finally:
            stop(job)
        said = [line for line in text.splitlines() if line.startswith("paceline: rank")]
        check(job.returncode == 5, f"ranks {victims} killed: exit {job.returncode}: {text}")
        check(len(said) == 1 and " lost: " in said[0] and all(f"rank {victim} on host" in said[0] for victim in victims),
              f"ranks {victims} killed, and it was said: {text}")
        print(f"ranks {victims} killed: {said[0]}")


def left(args, folder):
    """A process that is stopped, and that nobody is left to give up: on its way out, where mpirun would wait for it for ever, and
    in the middle of a run that no launcher started. It is ended a while after the deadline, and nothing is left behind."""
    library = args.runner.parent / "libstop_at_exit.so"
    if not library.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    need(args, "paceline_gloo.so", "libgloo-dev")
    victim, limits = args.processes - 1, ("--deadline", "2")
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
    check(code != 0 and f"process {victim} on host" in err and "has been stopped for 22 s" in err, f"exit {code}: {text}{err}")
    check(result(out)[0]["status"] == "complete", "its record was complete before")
    check(20 < seconds < 60, f"mpirun ended after {seconds:.1f} s: {err}")
    codes = [job.returncode for job in jobs]
    check(codes == [5] * victim + [-signal.SIGKILL], f"exit {codes}: {said}")
    check("has been stopped for 22 s" in said[victim], f"{said}")
    print(f"stopped on its way out: ended after {seconds:.1f} s: {err.strip().splitlines()[0]}")


def hold(process):
    """Stops the thread of `process` that has computed most, and no other: as one that hangs in a read of a dead disk. Its id."""
    libc = ctypes.CDLL(None, use_errno=True)
    ticks = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            ticks[int(task.name)] = sum(map(int, (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            pass  # it has ended since
    thread = max(ticks, key=ticks.get)
    for _ in range(1000):
        for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
            if libc.ptrace(request, thread, None, None) != 0:
                print(f"skipped: a thread of another process cannot be stopped here: {os.strerror(ctypes.get_errno())}")
                sys.exit(77)
        os.waitpid(thread, WALL)
        # Inside no call of the system: it computes, and does not wait for the others, which would be told as its waiting.
        if Path(f"/proc/{process}/task/{thread}/syscall").read_text().startswith("-1"):
            return thread
        libc.ptrace(PTRACE_DETACH, thread, None, None)
        time.sleep(0.003)
    raise AssertionError(f"thread {thread} of process {process} does not compute")


def hung(args, folder):
    """A thread that computes hangs while its process's heartbeats go on. Said within 5 s, given up at the deadline; without a
    launcher nobody would end that process, which cannot join its thread: it ends itself."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    for launched, victim in ((True, args.processes - 1), (False, args.processes - 1), (False, 0)):
        out = folder / f"hung{launched}{victim}"
        words = [args.program, *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--deadline", "9"), "--out", out]
        lines = [(mpirun(args.processes) + words, None)] if launched else [(words, place) for place in places(args.processes)]
        jobs, heard = [], []  # heard: (seconds, line)
        try:
            for line, place in lines:
                jobs.append(subprocess.Popen([str(word) for word in line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                             text=True, env=place))
            wait_for_checkpoint(out)
            time.sleep(1.5)
            process = children_of(jobs[0].pid)[victim] if launched else jobs[victim].pid
            begin = time.monotonic()
            thread = hold(process)
            readers = [threading.Thread(target=lambda job=job: heard.extend((time.monotonic() - begin, line) for line in job.stderr))
                       for job in jobs]
            for reader in readers:
                reader.start()
            while any(job.poll() is None for job in jobs) and time.monotonic() < begin + 60:
                time.sleep(0.1)
                try:
                    os.waitpid(thread, os.WNOHANG | WALL)  # who holds a thread has to collect it
                except ChildProcessError:
                    pass
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
        late = [line for _, line in heard if f"rank {victim} on host" in line and "within 9 s" in line]
        check(len(late) == 1, f"given up at the deadline, and said once: {said}")
        check(launched or f"process {victim} on host" in said, f"it ends itself: {said}")
        check(not runs(process), f"process {process} is left behind")
        print(f"{'mpirun' if launched else 'no launcher'}: said after {word[0]:.1f} s, all ended after {seconds:.1f} s\n{said.strip()}")


def kills(args, folder):
    """kill -9 of a random rank at a random time, --times often, in turns of two kinds: a run alone must end soon and say who
    was lost, a run with --restarts must end with the undisturbed run's bytes."""
    options = train_options(folder, "--steps", "1200", "--evaluate-every", "0")
    whole = folder / "whole"
    begin = time.monotonic()
    code, text, err = run(mpirun(args.processes) + [args.program, *options, "--out", whole])
    check(code == 0, f"exit {code}\n{text}{err}")
    length = time.monotonic() - begin
    chance = random.Random(args.seed)
    ends, restarts, too_late = [], [], 0
    while len(ends) + len(restarts) < args.times:
        again = len(restarts) < len(ends)
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        launch = [args.program, "launch", "-n", args.processes, "--restarts", "3" if again else "0", "--"]
        job = subprocess.Popen([str(word) for word in [*launch, *options, "--out", out]], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        try:
            wait_for_checkpoint(out)
            time.sleep(chance.uniform(0, 0.8 * length))
            launched = children(job.pid)
            ranks = children_of(launched[0]) if launched else []
            victim = chance.randrange(args.processes)
            if len(ranks) != args.processes or job.poll() is not None:
                too_late += 1
                check(too_late < args.times, "the runs end before they can be killed")
                continue
            begin = time.monotonic()
            os.kill(ranks[victim], signal.SIGKILL)
            while any(runs(process) for process in ranks) and time.monotonic() < begin + 60:
                time.sleep(0.02)
            gone = time.monotonic() - begin
            text, err = job.communicate(timeout=120)
            seconds = time.monotonic() - begin
        finally:
            for launched in children(job.pid):
                os.kill(launched, signal.SIGTERM)
            stop(job)
        said = [line for line in err.splitlines() if line.startswith("paceline: rank")]
        if "paceline: restart" not in err and job.returncode == 0:
            too_late += 1  # its last step was done
            check(too_late < args.times, "the runs end before they are killed")
            continue
        if again:
            check(job.returncode == 0, f"rank {victim} killed: exit {job.returncode}\n{text}{err}")
            check(result(whole)[1] == result(out)[1], f"rank {victim} killed, and the last checkpoint has other bytes")
            restarts.append(seconds)
            print(f"rank {victim} killed: restarted and finished after {seconds:.1f} s", flush=True)
        else:
            check(job.returncode == 5, f"rank {victim} killed: exit {job.returncode}\n{text}{err}")
            # mpirun itself waits for longer when the first process dies: for the time that launch lets it have to write.
            check(gone < 10 and seconds < 30, f"rank {victim} killed: the others ended after {gone:.1f} s, mpirun {seconds:.1f} s")
            check(len(said) == 1 and f"rank {victim} on host" in said[0] and "is lost" in said[0]
                  and "signal 9" in err, f"rank {victim} killed, and it was said: {err}")
            ends.append(gone)
            print(f"rank {victim} killed: ended after {gone:.1f} s, mpirun after {seconds:.1f} s", flush=True)
        left = [process for process in ranks if runs(process)]
        check(not left, f"processes {left} are left behind")
    for name, seconds in (("ended", ends), ("restarted and finished with the undisturbed bytes", restarts)):
        if seconds:
            print(f"{len(seconds)} runs {name} after {statistics.median(seconds):.1f} s (median, at most {max(seconds):.1f} s)")


def stop_ahead_of_checkpoint(process, out):
    """Stops `process` at a moment at which it has done more updates than its newest checkpoint has: returns how many more."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        os.kill(process, signal.SIGSTOP)
        time.sleep(0.05)  # its threads stop one after the other
        newest = max(int(path.stem.split("-")[1]) for path in out.glob("checkpoint-*.safetensors"))
        ahead = int((out / "updates-done").read_text()) - newest
        if ahead > 0:
            return ahead
        os.kill(process, signal.SIGCONT)
        time.sleep(0.02)
    raise AssertionError(f"{out}: no update without a checkpoint in 30 s")


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
            killed.append(chance.randrange(1, args.processes) if killed else 0)  # the one that writes, and another
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
    lost = result(out)[0]["restarts"]
    check(len(lost) == len(killed), f"ranks {killed} were killed, and the record has {lost}")
    for victim, one in zip(killed, lost):
        check(one["rebuild_s"] and 0 < one["rebuild_s"] < 60, f"rank {victim}: {one}")
        check(f"rank {victim} on host" in one["reason"] and 0 <= one["detection_s"] < 5, f"rank {victim}: {one}")
        check(one["lost_samples"] == 48 * one["lost_updates"] >= 0, f"rank {victim}: {one}")
    check(not (out / "lost-rank-0.json").exists(), "what the others left of process 0 is in the record now")
    print(f"ranks {killed} killed one after the other: the weights of the undisturbed run")
    print("\n".join(f"  {one['reason']}: known after {one['detection_s']:.2f} s, next first step {one['rebuild_s']:.1f} s later, "
                    f"{one['lost_samples']} samples again" for one in lost))

    # One process alone: nobody is left, and the record has what launch saw.
    alone = folder / "alone"
    job = subprocess.Popen([str(word) for word in [args.program, "launch", "-n", 1, "--restarts", "1", "--", *options, "--out",
                                                   alone]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_checkpoint(alone)
        time.sleep(1)  # launch looks twice a second
        process = children_of(children(job.pid)[0])[0]
        ahead = stop_ahead_of_checkpoint(process, alone)
        os.kill(process, signal.SIGKILL)
        text, err = job.communicate(timeout=120)
    finally:
        stop(job)
    check(job.returncode == 0 and "signal 9" in err, f"exit {job.returncode}\n{text}{err}")
    (one,) = result(alone)[0]["restarts"]
    check("signal 9" in one["reason"] and 0 <= one["detection_s"] < 5 and 0 < one["rebuild_s"] < 60, f"{one}")
    check(one["workers"] == 1 and one["lost_updates"] == ahead > 0, f"it was {ahead} updates ahead of its checkpoint: {one}")
    check(one["lost_samples"] == 48 * one["lost_updates"], f"{one}")
    check(not (alone / "updates-done").exists(), "a run that has a record needs no count beside it")


def ended(args, folder):
    """kill -9 in a run's last moments: its last checkpoint is there, its last record perhaps. With --restarts it is complete."""
    options = train_options(folder, "--steps", "120", "--evaluate-every", "0")
    last = "checkpoint-00000120.safetensors"
    whole = folder / "whole"
    code, text, err = run(mpirun(args.processes) + [args.program, *options, "--out", whole])
    check(code == 0, f"exit {code}\n{text}{err}")
    for victim in range(args.processes):
        for delay in (0, 0.05):
            out = folder / f"out{victim} {delay}"
            job = subprocess.Popen([str(word) for word in [args.program, "launch", "-n", args.processes, "--restarts", "2", "--",
                                                           *options, "--out", out]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
            try:
                wait_for_checkpoint(out)
                launched = children(job.pid)
                ranks = children_of(launched[0]) if launched else []
                until = time.monotonic() + 60
                while not (out / last).exists() and time.monotonic() < until:
                    pass
                time.sleep(delay)
                was_there = len(ranks) == args.processes and runs(ranks[victim])
                if was_there:
                    os.kill(ranks[victim], signal.SIGKILL)
                text, err = job.communicate(timeout=120)
            finally:
                stop(job)
            check(job.returncode == 0, f"rank {victim} killed at the end: exit {job.returncode}\n{text}{err}")
            record, checkpoint, losses, epochs = result(out)
            check(record["status"] == "complete", f"rank {victim} killed at the end: {record['status']}: {record['reason']}")
            check(len(record["epochs"]) == 30, f"{len(record['epochs'])} epochs of 30")
            check(checkpoint == result(whole)[1], f"rank {victim} killed at the end, and the last checkpoint has other bytes")
            print(f"rank {victim} killed {delay} s after the last checkpoint" if was_there else f"rank {victim} had left:",
                  err.strip().splitlines()[-1:] )


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
    """The disk of --out stops to answer in the middle of a run: said at the deadline, given up after ten of them, nobody left."""
    library = args.runner.parent / "libdead_disk.so"
    if not library.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    dead, out = folder / "dead", folder / "out"
    words = [args.program, *train_options(folder, "--steps", "10000000", "--evaluate-every", "0", "--deadline", "2"), "--out", out]
    job = subprocess.Popen([str(word) for word in mpirun(args.processes) + words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, env={**os.environ, "LD_PRELOAD": str(library), "DEAD_DISK": str(dead)})
    try:
        wait_for_checkpoint(out)
        time.sleep(1.5)
        processes = children_of(job.pid)
        begin = time.monotonic()
        dead.touch()
        text, err = job.communicate(timeout=100)
        seconds = time.monotonic() - begin
    finally:
        stop(job)
    check(len(processes) == args.processes, f"{len(processes)} processes run of {args.processes}")
    check(job.returncode == 3, f"exit {job.returncode}: {text}{err}")
    check(re.search(r"are not written to \S+ after [23] s; this is given up after 20 s", text), f"said at the deadline: {text[-500:]}")
    check("could not be written within 20 s" in text and str(out) in text, f"given up after ten deadlines: {text[-500:]}{err}")
    check(seconds < 70, f"all ended only after {seconds:.1f} s: {err}")
    check(not [process for process in processes if runs(process)], "processes are left behind")
    print(f"all ended after {seconds:.1f} s: {text.strip().splitlines()[-1]}")


def failed(args, folder):
    """The last process alone cannot read its data; all options are wrong alike; options that do not go together."""
    last = args.processes - 1
    options = train_options(folder, "--steps", "10")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--workers", 2 * args.processes + 1])
    check(code == 2 and err.count("paceline:") == 1 and "--workers" in err, f"workers: exit {code}: {err}")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--lr", "1e30"])
    check(code == 3 and err.count("paceline:") == 1 and "no longer finite" in err, f"lr: exit {code}: {err}")
    code, out, err = run(mpirun(args.processes) + [args.program, "data", "info", "synthetic"])
    check(code == 2 and err.count("paceline:") == 1 and "one process" in err, f"data: exit {code}: {err}")
    # Only one process has an error: the others are told.
    mine = folder / "only-here.toml"
    script = f'if [ $OMPI_COMM_WORLD_RANK = {last} ]; then cd "{folder}/elsewhere"; fi; exec "$@"'
    (folder / "elsewhere").mkdir()
    mine.write_text(MODEL)
    words = [args.program, "train", "--model", "only-here.toml", *COMMON, "--steps", "10"]
    code, out, err = run(mpirun(args.processes) + ["sh", "-c", script, "sh", *words], cwd=folder)
    check(code != 0 and err.count("paceline:") == 1 and "only-here.toml" in err, f"one process: exit {code}: {err}")
    print("errors of all and of one process are said once")
