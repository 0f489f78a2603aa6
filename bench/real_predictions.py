#!/usr/bin/env python3
"""Predictions of two workers of this machine at batches at which two were not measured, scored by runs of those.

    bench/real_predictions.py --program build/release/paceline --out DIR [--only MODEL..]

For each model one `scale` of workers 1 and 2 at three batches, repeats in turns, so that phases of the host meet all cells. `predict` gets
one worker at all batches and two workers at the middle one, which is where the sharing of the node is measured; two workers at the outer
batches score it. The scores are left out of the prediction by hash, not by time: one study is measured at once, since its host drifts.
Exit 1 where a step lies more than 5 % off. DIR keeps records and predictions with their scores.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

MODELS = {"mnist-cnn": "synthetic,train=4096,test=64,size=28", "resnet8-cifar": "synthetic,train=4096,test=64",
          "cifar-speedrun": "synthetic,train=4096,test=64"}
BATCHES = [16, 32, 64]
SHARED = 32  # at which two workers are measured


def run(program, *words, may_fail=False):
    done = subprocess.run([str(word) for word in [program, *words]], capture_output=True, text=True)
    if done.returncode > 1 or (done.returncode and not may_fail):
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--seconds", type=float, default=4, help="of a window at most; an epoch of the 4,096 images may be shorter")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    worst = 0
    for model in arguments.only:
        folder = arguments.out / model
        if not (folder / "records").exists():
            run(arguments.program, "scale", "--model", model, "--data", MODELS[model], "--workers", "1,2", "--mode", "weak", "--threads", 1,
                "--batches", ",".join(map(str, BATCHES)), "--window-seconds", arguments.seconds, "--warmup-steps", 5, "--repeats", 5,
                "--precision", "fp32", "--no-augment", "--out", folder)
        read = {path: json.loads(path.read_text()) for path in sorted((folder / "records").glob("*.json"))}
        given = [path for path, record in read.items() if record["workers"] == 1 or record["local_batch"] == SHARED]
        for batch in BATCHES:
            if batch == SHARED:
                continue
            prediction = arguments.out / f"real-{model}-b{batch}.json"
            later = [path for path, record in read.items() if record["workers"] == 2 and record["local_batch"] == batch]
            run(arguments.program, "predict", *given, "--workers", 2, "--local-batch", batch, "--out", prediction)
            run(arguments.program, "predict", "--score", prediction, *later, "--out", prediction, may_fail=True)
            score, = json.loads(prediction.read_text())["scores"]
            ratio = score["measured_over_predicted"]
            worst = max(worst, abs(ratio - 1))
            rivals = [score["measured_s"] / score[key] for key in ("constant_overhead_s", "scalability_law_s")]
            print(f"{model:16} b {batch:3}  measured {1e3 * score['measured_s']:8.2f} ms  over predicted {ratio:.3f}  "
                  f"{'inside' if score['is_inside'] else 'OUTSIDE'}  constant overhead {rivals[0]:.3f}  law {rivals[1]:.3f}", flush=True)
    print(f"worst {100 * worst:.1f} % off")
    return 1 if worst > 0.05 else 0


if __name__ == "__main__":
    sys.exit(main())
