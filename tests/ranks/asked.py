"""Case of ranks.py: a run that is asked to stop by a signal to one of its processes: all end with the code of that signal."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

from again import weights
from launching import check, left_of, need, places, ranks_of, run, stop, train_options

CODES = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}
LENGTH = ("--steps", "3000", "--evaluate-every", "0", "--checkpoint-every", "50steps", "--shard", "4")


def asked(args, folder):
    """A node that is drained, Ctrl-C in the terminal of one process, a terminal that is closed: of processes that met by
    themselves, of a study, and below mpirun."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    alone, whole = (args.program, *train_options(folder, *LENGTH), "--workers", args.processes), folder / "whole"
    code, text, err = run([*alone, "--out", whole])
    check(code == 0, f"one process: exit {code}: {text}{err}")
    for victim, word in ((0, signal.SIGTERM), (1, signal.SIGTERM), (args.processes - 1, signal.SIGINT), (1, signal.SIGHUP)):
        out = folder / f"asked{victim}{word.name}"
        training(args, folder, out, victim, word)
        code, text, err = run([*alone, "--resume", "auto", "--out", out])
        check(code == 0, f"going on: exit {code}: {text}{err}")
        check(weights(out) == weights(whole), f"{word.name} to rank {victim}: other weights after going on")
        print(f"{word.name} to rank {victim}: all end with {CODES[word]}, and the run goes on to the undisturbed weights")
    study(args, folder)
    below_mpirun(args, folder)


def stops(args, folder):
    """SIGTERM to a random process at a random moment, --times often, in turns of processes that met by themselves and of
    processes below launch: all end with 143, and the run that goes on has the undisturbed bytes."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    alone, whole = (args.program, *train_options(folder, *LENGTH), "--workers", args.processes), folder / "whole"
    code, text, err = run([*alone, "--out", whole])
    check(code == 0, f"one process: exit {code}: {text}{err}")
    chance, out = random.Random(args.seed), folder / "out"
    for turn in range(args.times):
        shutil.rmtree(out, ignore_errors=True)
        victim, wait = chance.randrange(args.processes), chance.random()
        words, is_launched = [args.program, *train_options(folder, *LENGTH), "--out", out], turn % 2 == 1
        if is_launched:
            launch = [args.program, "launch", "-n", args.processes, "--", *words[1:]]
            codes, said = end_of_launched(args, launch, victim, lambda: begun(out, wait))
        else:
            codes, said = ends_of(args, words, victim, signal.SIGTERM, lambda: begun(out, wait))
        what = f"{turn + 1}: SIGTERM to rank {victim}{' below launch' if is_launched else ''}"
        check(codes == [143] * len(codes), f"{what}: exit {codes}: {said[-2000:]}")
        code, text, err = run([*alone, "--resume", "auto", "--out", out])
        check(code == 0, f"{what}: going on: exit {code}: {text}{err}")
        check(weights(out) == weights(whole), f"{what}: other weights after going on")
        print(f"{what}: {codes}, and the run goes on to the undisturbed weights", flush=True)


def begun(out, wait):
    """Whether the run has written a checkpoint; then, after `wait` seconds."""
    if not list(out.glob("checkpoint-*.safetensors")):
        return False
    time.sleep(wait)
    return True


def end_of_launched(args, words, victim, is_ready):
    """The exit code of a launch of whose processes one gets SIGTERM, and what was said."""
    job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while not is_ready() and time.monotonic() < until:
            time.sleep(0.02)
        ranks = ranks_of(job, args.processes)
        os.kill(ranks[victim], signal.SIGTERM)
        said = "".join(job.communicate(timeout=60))
    finally:
        stop(job)
    check(not left_of(ranks), "processes are left")
    return [job.returncode], said


def ends_of(args, words, victim, word, is_ready):
    """The exit codes, and all that was said, of processes of which one gets the signal when the run is ready for it."""
    jobs = [subprocess.Popen([str(one) for one in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=place,
                             start_new_session=True) for place in places(args.processes)]
    try:
        until = time.monotonic() + 60
        while not is_ready() and time.monotonic() < until:
            time.sleep(0.02)
        check(all(job.poll() is None for job in jobs), "the run was over before the signal")
        os.kill(jobs[victim].pid, word)
        said = "".join("".join(job.communicate(timeout=60)) for job in jobs)
    finally:
        for job in jobs:
            job.kill()
    return [job.returncode for job in jobs], said


def training(args, folder, out, victim, word):
    words = [args.program, *train_options(folder, *LENGTH), "--out", out]
    codes, said = ends_of(args, words, victim, word, lambda: list(out.glob("checkpoint-*.safetensors")))
    check(codes == [CODES[word]] * args.processes, f"{word.name} to rank {victim}: exit {codes}: {said[-2000:]}")
    record = json.loads((out / "record.json").read_text())
    check(record["status"] == "interrupted" and "as asked" in record["reason"], f"{record['status']}: {record['reason']}")


def study(args, folder):
    """The first process leads; the signal comes to the last one, which has no work in the first cells."""
    out = folder / "study"
    words = [args.program, "scale", "--model", folder / "model.toml", "--data", "synthetic,train=192,test=50", "--threads", "1",
             "--no-pin", "--workers", ",".join(str(one + 1) for one in range(args.processes)), "--batches", "16", "--repeats", "6",
             "--window-steps", "2000", "--out", out]
    codes, said = ends_of(args, words, args.processes - 1, signal.SIGTERM, lambda: list(out.glob("records/*.json")))
    check(codes == [143] * args.processes, f"a study: exit {codes}: {said[-2000:]}")
    check("the same command goes on" in said, f"a study that was stopped: {said[-2000:]}")
    print("SIGTERM to the last process of a study: all end with 143")


def below_mpirun(args, folder):
    out = folder / "launched"
    words = [args.program, "launch", "-n", args.processes, "--restarts", "2", "--", *train_options(folder, *LENGTH), "--out", out]
    codes, said = end_of_launched(args, words, args.processes - 1, lambda: begun(out, 0))
    check(codes == [143] and "the next try" not in said, f"launch: exit {codes}: {said[-2000:]}")
    print("SIGTERM to a rank below mpirun: launch ends with 143 and restarts nothing")
