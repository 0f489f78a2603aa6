#!/usr/bin/env python3
"""Predictions of many workers from one and two, scored by workers that sleep over emulated links: their truth is known.

    bench/ghosts.py --program build/release/paceline --out DIR [--only NAME..] [--steps 24]

Each case is a `scale` of workers 1, 2, 4, 8, 16 (--emulate-compute, --emulate-link) in which one thing was put in by hand: a link, a
straggler, slow storage. `paceline predict` gets the records of 1 and 2 workers; those of 4, 8 and 16 score it. DIR keeps records and
predictions; a case whose records are there is not measured again, so the cases can be run in several windows. Bounds (exit 1): median
error 5 %, worst 10 %, 90 % of at least 40 predictions inside their 90 % intervals, errors smaller than those of constant overhead and
of the universal scalability law, mean half-width at most twice the 90th percentile of |measured/predicted - 1|, and the limit that was put
in is the limit that is named. The bounds are held by the intervals as the program assumes them, and again by intervals that the scores of
the other cases have calibrated.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODEL = ["--model", "resnet8-cifar", "--bucket-mb", "0.1", "--no-augment"]  # a gradient of 0.31 MB in three buckets
DATA = "synthetic,train=4096,test=64,size=8"  # small images, so that 16 loaders take little of two cores
LINKS = {
    "latency": "latency=1ms,bandwidth=1GB/s",
    "bandwidth": "latency=50us,bandwidth=5MB/s",
    "two-levels": "latency=1ms,bandwidth=8MB/s,per-host=4,inside-latency=50us,inside-bandwidth=20MB/s",
    "oversubscribed": "latency=100us,bandwidth=12MB/s,per-switch=4,oversubscription=2.5",
}
COMPUTE = "forward=40ms,backward=80ms,update=4ms,spread="
# What is put in: further words of the command, and the parts of the waterfall that may name it.
TRANSFER = {"exposed latency", "exposed transfer"}
WAITING = {"slowest worker", "jitter", "other waiting"}
CASES = {f"{link}-{name}": (spec, spread, more, limits)
         for link, spec in LINKS.items()
         for name, spread, more, limits in [
             ("steady", "3%", [], TRANSFER), ("spread", "10%", [], TRANSFER | WAITING),
             ("straggler", "3%", ["--emulate-straggler", "rank=1,slower=2x"], WAITING)]}
CASES |= {f"{link}-storage": (LINKS[link], "3%", ["--data", DATA + ",delay-us=40000"], {"data wait"})
          for link in ("latency", "bandwidth")}
MEASURED, PREDICTED = [1, 2], [4, 8, 16]


def run(program, *words, may_fail=False):
    done = subprocess.run([str(word) for word in [program, *words]], capture_output=True, text=True)
    if done.returncode and not may_fail:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def records(folder, workers):
    return [path for path in sorted((folder / "records").glob("*.json")) if json.loads(path.read_text())["workers"] in workers]


def measure(program, folder, steps, link, spread, more):
    data = [] if "--data" in more else ["--data", DATA]
    run(program, "scale", *MODEL, *data, "--workers", ",".join(map(str, MEASURED + PREDICTED)), "--batches", 8, "--mode", "weak",
        "--window-steps", steps, "--warmup-steps", 4, "--repeats", 1, "--measure-again", 0, "--precision", "fp32",
        "--emulate-compute", COMPUTE + spread, "--emulate-link", link, *more, "--out", folder)


def predict(program, folder, name, calibrate_by=()):
    """The scores of a case, and the limit that its prediction names. `calibrate_by`: scores of other cases."""
    file, scored = folder / f"{name}.json", folder / f"{name}-scored.json"
    by = [word for path in calibrate_by for word in ("--calibrate-by", path)]
    run(program, "predict", *records(folder, MEASURED), "--workers", ",".join(map(str, PREDICTED)), "--scaling", "weak", *by, "--out", file)
    run(program, "predict", "--score", file, *records(folder, PREDICTED), "--out", scored, may_fail=True)
    scored = json.loads(scored.read_text())
    scores = [{**one, **{f"{key}_s": one["predicted_s"][key] for key in ("low", "high")}, "predicted_s": one["predicted_s"]["median"]}
              for one in scored["scores"]]
    return scores, (scored["limit"] or {"part": "nothing"})["part"]


def error(ratio):
    return abs(ratio - 1)


def show(name, scores, limit, limits):
    for one in scores:
        low, high = one["low_s"] / one["predicted_s"], one["high_s"] / one["predicted_s"]
        print(f"{name} {one['workers']}: measured {1e3 * one['measured_s']:.1f} ms, {one['measured_s'] / one['predicted_s']:.3f} of the "
              f"prediction [{low:.3f}, {high:.3f}]; constant overhead {one['measured_s'] / one['constant_overhead_s']:.3f}, "
              f"scalability law {one['measured_s'] / one['scalability_law_s']:.3f}")
    print(f"{name}: limit {limit}, put in: {' or '.join(sorted(limits))}")


def summary(what, scores):
    """Prints figures of all scores, and returns what they do not keep."""
    errors = {key: sorted(error(one["measured_s"] / one[key]) for one in scores)
              for key in ("predicted_s", "constant_overhead_s", "scalability_law_s")}
    inside = sum(one["low_s"] <= one["measured_s"] <= one["high_s"] for one in scores) / len(scores)
    width = statistics.mean((one["high_s"] - one["low_s"]) / 2 / one["predicted_s"] for one in scores)
    ours = errors["predicted_s"]
    ninth = statistics.quantiles(ours, n=10, method="inclusive")[-1]
    median = {key: statistics.median(values) for key, values in errors.items()}
    print(f"{what}: {len(ours)} predictions: median error {median['predicted_s']:.2%}, worst {ours[-1]:.2%}, {inside:.1%} inside, mean half-width "
          f"{width:.2%}, 90th percentile of the error {ninth:.2%}; constant overhead {median['constant_overhead_s']:.2%} (worst "
          f"{errors['constant_overhead_s'][-1]:.2%}), scalability law {median['scalability_law_s']:.2%} (worst {errors['scalability_law_s'][-1]:.2%})")
    bounds = [(len(ours) >= 40, "fewer than 40 predictions"), (median["predicted_s"] <= 0.05, "median error above 5 %"),
              (ours[-1] <= 0.1, "worst error above 10 %"), (inside >= 0.9, "fewer than 90 % inside"),
              (median["predicted_s"] < min(median["constant_overhead_s"], median["scalability_law_s"]), "not better than the rivals"),
              (width <= 2 * ninth, "intervals wider than twice the 90th percentile of the errors")]
    return [text for holds, text in bounds if not holds]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--measure-only", action="store_true")
    options = parser.parse_args()
    program, faults = options.program.resolve(), []
    for name in options.only:
        link, spread, more, _ = CASES[name]
        folder = options.out / name
        if len(records(folder, PREDICTED)) < len(PREDICTED):
            begin = time.monotonic()
            measure(program, folder, options.steps, link, spread, more)
            print(f"{name}: measured in {time.monotonic() - begin:.0f} s", flush=True)
    if options.measure_only:
        return
    first, calibrated = [], []
    for name in options.only:
        scores, limit = predict(program, options.out / name, "prediction")
        show(name, scores, limit, CASES[name][3])
        first += scores
        if limit not in CASES[name][3]:
            faults.append(f"{name}: the limit is named {limit}")
    faults += [f"as assumed: {text}" for text in summary("intervals as assumed", first)]
    for name in options.only:
        others = [options.out / other / "prediction-scored.json" for other in options.only if other != name]
        calibrated += predict(program, options.out / name, "calibrated", others)[0]
    faults += [f"calibrated: {text}" for text in summary("intervals calibrated by the other cases", calibrated)]
    print("\n".join(faults) or "all bounds are kept")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
