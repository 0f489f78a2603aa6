"""Cases of ranks.py that look at the spans of --timeline."""

import json

from launching import COMMON, check, mpirun, run, train_options

DEEP_MODEL = """
[[layer]]
op = "conv2d"
name = "conv1"
channels = 32
kernel = 3
padding = 1
[[layer]]
op = "relu"
[[layer]]
op = "conv2d"
name = "conv2"
channels = 32
kernel = 3
padding = 1
[[layer]]
op = "relu"
[[layer]]
op = "conv2d"
name = "conv3"
channels = 32
kernel = 3
padding = 1
stride = 2
[[layer]]
op = "relu"
[[layer]]
op = "dense"
name = "fc"
features = "classes"
"""


def timeline(args, folder):
    """One file of all ranks' spans; clocks are one here, so no collective may end before it has begun everywhere."""
    file = folder / "timeline.json"
    code, out, err = run(mpirun(args.processes) + [args.program, *train_options(folder, "--steps", "12"), "--timeline", file,
                                                   "--out", folder / "out"])
    check(code == 0, f"exit {code}\n{out}{err}")
    trace = json.loads(file.read_text())
    error = max(trace["otherData"]["clock_error_us"])
    spans = {}
    for event in trace["traceEvents"]:
        if event["name"] == "bucket 0":
            spans.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"]))
    check(sorted(spans) == list(range(args.processes)) and all(len(one) == 12 for one in spans.values()), f"{spans}")
    for step in zip(*spans.values()):
        begun, ended = max(one[0] for one in step), min(one[1] for one in step)
        check(begun <= ended + 2 * error, f"a sum was there {begun - ended} us before the last rank gave its part: {step}")
    print(f"{args.processes} ranks on one time axis, clocks within {error:.0f} us")


def spans_of(file, processes):
    """For each rank and step: the span of its backward pass, and of each bucket's all-reduce from posting to the sum being
    there. [rank][step] -> (backward, [bucket 0, bucket 1, ...]), microseconds."""
    events = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    ranks = []
    for rank in range(processes):
        named = {}
        for event in events:
            if event["pid"] == rank:
                named.setdefault(event["name"], []).append((event["ts"], event["ts"] + event["dur"]))
        buckets = sum(name.startswith("bucket ") for name in named)
        ranks.append(list(zip(named["backward"], zip(*(named[f"bucket {i}"] for i in range(buckets))))))
    return ranks


def best_of_three(steps, count):
    """The first of three runs in which `count()` steps are more than half of all, or the best: where another program takes a core, the
    ranks compute one after the other, and nothing can overlap."""
    counts = []
    while len(counts) < 3 and (not counts or counts[-1] <= steps / 2):
        counts.append(count(len(counts)))
    return max(counts)


def overlap(args, folder):
    """Four buckets of a model whose first gradients are ready when most of its backward pass is still to come."""
    model, file, steps = folder / "deep.toml", folder / "timeline.json", 24
    model.write_text(DEEP_MODEL)

    def run_spans(*more):
        code, out, err = run(mpirun(args.processes) + [args.program, "train", "--model", model, *COMMON, "--steps", steps, "--bucket-mb",
                                                       "0.03", "--timeline", file, *more])
        check(code == 0, f"exit {code}\n{out}{err}")
        ranks = spans_of(file, args.processes)
        check(all(len(rank) == steps and len(rank[0][1]) == 4 for rank in ranks), f"{steps} steps of 4 buckets: {ranks}")
        return ranks

    # Data move while the backward pass computes: the sum is there before its own backward pass is over, at the rank that
    # came last and so held nobody up.
    for way in ([], ["--no-shared-memory"]):
        def moved(turn):
            lasts = [max(step, key=lambda one: one[1][0][0]) for step in zip(*run_spans(*way, "--out", folder / f"out{len(way)}-{turn}"))]
            return sum(backward[0] < buckets[0][0] and buckets[0][1] < backward[1] for backward, buckets in lasts)
        most = best_of_three(steps, moved)
        check(most > steps / 2, f"{way}: the first bucket was summed within the backward pass in {most} of {steps} steps")
        print(f"{way or 'memory of the host'}: first bucket summed within the backward pass in {most} of {steps} steps")

    # A rank waits for nobody in its backward pass: its last bucket is posted while a slow rank has not given its first.
    def ahead(turn):
        spans = run_spans("--emulate-straggler", "rank=1,slower=6", "--out", folder / f"straggler{turn}")
        return sum(quick[1][-1][0] < slow[1][0][0] < quick[1][0][1] for quick, slow in zip(*spans[:2]))
    most = best_of_three(steps, ahead)
    check(most > steps / 2, f"the backward pass was over before the slow rank's began to give in {most} of {steps} steps")
    print(f"the quick rank had posted all its buckets before the slow one posted its first in {most} of {steps} steps")
