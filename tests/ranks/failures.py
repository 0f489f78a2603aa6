"""Cases of ranks.py: processes that are killed or in error, and what becomes of the others."""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

from launching import (COMMON, MODEL, check, children, children_of, errors_in, left_of, mpirun, ranks_of, result, run, runs, stop,
                       train_options, wait_for_checkpoint)


def lost(args, folder):
    for victim in range(args.processes):
        out = folder / f"lost{victim}"
        options = train_options(folder, "--steps", "10000000", "--evaluate-every", "0")
        # As launch does: after mpirun's own second a busy host kills the first process before it has written its record.
        patient = mpirun(args.processes) + ["--mca", "odls_base_sigkill_timeout", "4"]
        job = subprocess.Popen([str(word) for word in patient + [args.program, *options, "--out", out]],
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
        left = left_of(processes)
        check(not left, f"processes {left} are left behind")
        print(f"rank {victim} killed: all ended after {seconds:.1f} s" + (f": {said[0]}" if said else ""))


def together(args, folder):
    """ProcessGroup 0 and 1 killed at once, 0 and all but the last, 1 and 2, and 0 and the last: the lowest that is left names all that
    are gone."""
    last = args.processes - 1
    for victims in ((0, 1), tuple(range(last)), (1, 2), (0, last)):
        out = folder / f"lost{victims}"
        options = train_options(folder, "--steps", "10000000", "--evaluate-every", "0")
        job = subprocess.Popen([str(word) for word in [args.program, "launch", "-n", args.processes, "--", *options, "--out", out]],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_for_checkpoint(out)
            time.sleep(1.5)
            processes = ranks_of(job, args.processes)
            for victim in victims:
                os.kill(processes[victim], signal.SIGSTOP)  # so that the first to die is not told on by the second
            begin = time.monotonic()
            for victim in victims:
                os.kill(processes[victim], signal.SIGKILL)
            heard = [(time.monotonic() - begin, line) for line in job.stderr]
            job.communicate(timeout=60)
        finally:
            stop(job)
        text = "".join(line for _, line in heard)
        said = [line for _, line in heard if line.startswith("paceline: rank")]
        check(job.returncode == 5, f"ranks {victims} killed: exit {job.returncode}: {text}")
        check(len(said) == 1 and " lost: " in said[0] and all(f"rank {victim} on host" in said[0] for victim in victims),
              f"ranks {victims} killed, and it was said: {text}")
        (when,) = [when for when, line in heard if line.startswith("paceline: rank")]
        check(when < 5, f"ranks {victims} killed, and it was said after {when:.1f} s: mpirun holds back what is written meanwhile")
        print(f"ranks {victims} killed, said after {when:.2f} s: {said[0].strip()}")


def wait_for_update(out, update, job, seconds=60):
    """Until a run has done so many updates, as its file tells; how many it has done then. None: it has ended, or takes too long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and job.poll() is None:
        try:
            done = int((out / "updates-done").read_text())
        except (OSError, ValueError):  # not there yet, or empty
            done = -1
        if done >= update:
            return done
        time.sleep(0.0002)
    return None


def kills(args, folder):
    """kill -9 of a random rank at a random step, --times often, in turns of two kinds: a run alone must end soon and say who
    was lost, a run with --restarts must end with the undisturbed run's bytes."""
    steps = 1500
    options = train_options(folder, "--steps", steps, "--evaluate-every", "0")
    whole = folder / "whole"
    code, text, err = run(mpirun(args.processes) + [args.program, *options, "--out", whole])
    check(code == 0, f"exit {code}\n{text}{err}")
    record, undisturbed = result(whole)[:2]
    step_seconds = record["ranks"][0]["wall_s"] / steps
    chance = random.Random(args.seed)
    ends, restarts = [], []
    for turn in range(args.times):
        again = turn % 2 == 1
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        launch = [args.program, "launch", "-n", args.processes, "--restarts", "3" if again else "0", "--"]
        victim, update = chance.randrange(args.processes), chance.randrange(steps * 7 // 10)  # then it is still at work
        job = subprocess.Popen([str(word) for word in [*launch, *options, "--out", out]], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        try:
            check(wait_for_update(out, 0, job) is not None, "no run begins")
            ranks = ranks_of(job, args.processes)
            done = wait_for_update(out, update, job)
            check(done is not None, f"update {update} was not reached")
            time.sleep(chance.random() * step_seconds)
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
        what = f"{turn + 1}: rank {victim} killed in step {done + 1}"
        said = [line for line in err.splitlines() if line.startswith("paceline: rank")]
        check(len(said) == 1 and f"rank {victim} on host" in said[0] and "is lost" in said[0] and "signal 9" in err,
              f"{what}, and it was said: {err}")
        if again:
            check(job.returncode == 0 and err.count("paceline: restart") == 1, f"{what}: exit {job.returncode}\n{text}{err}")
            check(result(out)[1] == undisturbed, f"{what}, and the last checkpoint has other bytes")
            restarts.append(seconds)
            print(f"{what}: ended after {gone:.1f} s, restarted and finished with the same weights after {seconds:.1f} s", flush=True)
        else:
            check(job.returncode == 5, f"{what}: exit {job.returncode}\n{text}{err}")
            # mpirun itself waits for longer when the first process dies: for the time that launch lets it have to write.
            check(gone < 10 and seconds < 30, f"{what}: the others ended after {gone:.1f} s, mpirun {seconds:.1f} s")
            ends.append(gone)
            print(f"{what}: ended after {gone:.1f} s, mpirun after {seconds:.1f} s", flush=True)
        left = left_of(ranks)
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
        process = ranks_of(job, 1)[0]
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


def failed(args, folder):
    """The last process alone cannot read its data; all options are wrong alike; options that do not go together."""
    last = args.processes - 1
    options = train_options(folder, "--steps", "10")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--workers", 2 * args.processes + 1])
    check(code == 2 and errors_in(err) == 1 and "--workers" in err, f"workers: exit {code}: {err}")
    code, out, err = run(mpirun(args.processes) + [args.program, *options, "--lr", "1e30"])
    check(code == 3 and errors_in(err) == 1 and "no longer finite" in err, f"lr: exit {code}: {err}")
    code, out, err = run(mpirun(args.processes) + [args.program, "data", "info", "synthetic"])
    check(code == 2 and errors_in(err) == 1 and "one process" in err, f"data: exit {code}: {err}")
    # Only one process has an error: the others are told.
    mine = folder / "only-here.toml"
    script = f'if [ $OMPI_COMM_WORLD_RANK = {last} ]; then cd "{folder}/elsewhere"; fi; exec "$@"'
    (folder / "elsewhere").mkdir()
    mine.write_text(MODEL)
    words = [args.program, "train", "--model", "only-here.toml", *COMMON, "--steps", "10"]
    code, out, err = run(mpirun(args.processes) + ["sh", "-c", script, "sh", *words], cwd=folder)
    check(code != 0 and errors_in(err) == 1 and "only-here.toml" in err, f"one process: exit {code}: {err}")
    print("errors of all and of one process are said once")


def refused(args, folder):
    """The system refuses the last process its nth thread, whichever: it says so, and nobody waits for it."""
    library = args.runner.parent / "librefuse_thread.so"
    if not library.exists():
        print("skipped: built with a sanitizer, which has to be loaded first")
        sys.exit(77)
    script = (f'if [ $OMPI_COMM_WORLD_RANK = {args.processes - 1} ]; then export LD_PRELOAD="{library}" REFUSE_THREAD=$0; fi; '
              'exec "$@"')
    said, code = 0, 1
    for number in range(1, 60):
        words = [args.program, *train_options(folder, "--steps", "2"), "--threads", "2", "--out", folder / f"o{number}"]
        begin = time.monotonic()
        code, out, err = run(mpirun(args.processes) + ["sh", "-c", script, number, *words])
        seconds = time.monotonic() - begin
        if code == 0:
            break
        check(seconds < 30 and "terminate called" not in err, f"thread {number}: ended after {seconds:.1f} s: {err}")
        if "paceline:" not in err:  # MPI needed it, and gave up in its own words
            continue
        check(code == 4 and "could not be started: " in err, f"thread {number}: exit {code}: {err}")
        said += 1
    check(code == 0 and said >= 5, f"{said} threads were refused and said, and the last run ended with {code}: {err}")
    print(f"{said} threads of one process, refused one after the other: each said, with exit code 4")
