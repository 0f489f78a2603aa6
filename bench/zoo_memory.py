#!/usr/bin/env python3
"""What --plan says of the memory of each model of the zoo, against what its training then takes.

    bench/zoo_memory.py --program build/release/paceline [--models NAME ..] [--precision fp32] [--out FILE.json]

Each model trains six steps, so that all slots of its loaders fill, on synthetic images of its usual size (1,000 classes at 224x224, 10
below), at two batches, the second twice the first. Memory is the plan's against the most that the process had resident, as the kernel
counts it (VmHWM, in the record).
Activations alone are what the second batch takes more than the first, by plan and by run: all that grows with the batch.
Ends with 1 where a bound is missed (10 %, activations 3 %).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import record

MEMORY, ACTIVATIONS = 0.10, 0.03
BATCHES = {"wide-resnet-28-10": 16, "small-mobile": 256, "small-inception": 256, "small-norm": 256, "small-cnn": 256}  # 64 of small images else, 8 of large ones


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def measure(args, model, shape, batch):
    """The plan's memory lines and the peak, in bytes."""
    size = shape.split("x")[1]
    data = f"synthetic,size={size},classes={1000 if int(size) > 32 else 10},train={8 * batch},test={4 * batch}"
    with tempfile.TemporaryDirectory() as folder:
        words = [str(args.program), "train", "--model", model, "--data", data, "--local-batch", str(batch), "--steps", "6", "--lr", "0.001",
                 "--precision", args.precision, "--out", folder + "/run"]
        planned = json.loads(run([*words, "--plan", "--json"]))["memory"]
        run(words)
        kept = json.loads(next(Path(folder).rglob("record.json")).read_text())["memory"]
    return {"batch": batch, "planned": planned["bytes"], "lines": planned["lines"], "peak": kept["peak_bytes"], "ratio": kept["peak_bytes"] / planned["bytes"]}


def row_of(args, model, shape):
    batch = BATCHES.get(model, 8 if int(shape.split("x")[1]) > 32 else 64)
    small, large = measure(args, model, shape, batch), measure(args, model, shape, 2 * batch)
    more = {key: large[key] - small[key] for key in ("planned", "peak")}
    return {"model": model, "image": shape, "small": small, "large": large, "activations_ratio": more["peak"] / more["planned"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    listed = (line.split() for line in run([str(args.program), "model", "list"]).splitlines())
    images = {words[0]: words[1] for words in listed if len(words) > 1 and words[1].count("x") == 2}
    rows, bad = [], False
    for model in args.models or images:
        rows.append(row := row_of(args, model, images[model]))
        wrong = [f"batch {part['batch']}: {part['ratio']:.3f}" for part in (row["small"], row["large"]) if abs(part["ratio"] - 1) > MEMORY]
        if abs(row["activations_ratio"] - 1) > ACTIVATIONS:
            wrong.append(f"activations: {row['activations_ratio']:.3f}")
        bad = bad or bool(wrong)
        print(f"{model:<24} batch {row['small']['batch']:3} {row['small']['peak'] / 1e6:7.0f} of {row['small']['planned'] / 1e6:7.0f} MB ({row['small']['ratio']:.3f}), "
              f"batch {row['large']['batch']:3} {row['large']['ratio']:.3f}, activations {row['activations_ratio']:.3f}  {'; '.join(wrong)}", flush=True)
    if args.out:
        record.write(args.out, {**record.header("plans of memory against trainings: the zoo"), "precision": args.precision,
                                "bounds": {"memory": MEMORY, "activations": ACTIVATIONS}, "rows": rows})
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
