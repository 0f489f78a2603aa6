#!/usr/bin/env python3
"""Exported models beside other programs: ONNX's checker accepts them, OpenCV and ONNX Runtime compute the same logits.

    onnx_export.py --runner onnx_run --witness checker|opencv|runtime MODEL..    MODEL: as onnx_run takes them
    onnx_export.py --program paceline --witness classify                          a trained checkpoint, by OpenCV and by `paceline classify`

Models have random weights and three random images; onnx_run's logits are the reference engine's for models of layers, the processor's
(--device cpu) for those of the zoo. The runtime is onnxruntime-web of web/node_modules, in node: no network is needed. Without a witness
its test says so and ends with 77.
"""

import argparse
import csv
import json
import math
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEAR = 1e-4  # absolute, and relative to the largest logit: sums of fp32 in other orders


def skip(sentence):
    print(f"skipped: {sentence}")
    sys.exit(77)


def floats(path):
    data = path.read_bytes()
    return struct.unpack(f"<{len(data) // 4}f", data)


def by_checker(folder, models):
    try:
        import onnx
    except ImportError:
        skip("onnx is not there; on Debian: apt-get install python3-onnx")
    faults = []
    for name, count, *shape, classes in models:
        path = folder / f"{name}.onnx"
        onnx.checker.check_model(str(path), full_check=True)
        model = onnx.load(str(path))
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        found = {value.name: [length.dim_param or length.dim_value for length in value.type.tensor_type.shape.dim]
                 for value in [*inferred.graph.input, *inferred.graph.output]}
        wanted = {"input": ["N", *shape], "logits": ["N", classes]}
        if found != wanted:
            faults.append(f"{name}: shapes {found}, not {wanted}")
        if len(inferred.graph.value_info) < len(model.graph.node) - 1:
            faults.append(f"{name}: only {len(inferred.graph.value_info)} of {len(model.graph.node)} values have a shape")
        if (model.producer_name, model.opset_import[0].version) != ("Paceline", 9):
            faults.append(f"{name}: {model.producer_name}, opset {model.opset_import[0].version}")
        print(f"{name}: {len(model.graph.node)} nodes, onnx {onnx.__version__} accepts it")
    return faults


def distance(name, theirs, ours):
    if len(theirs) != len(ours) or not all(map(math.isfinite, theirs)):
        return f"{name}: {len(theirs)} logits, of which {sum(map(math.isfinite, theirs))} are numbers; {len(ours)} were expected"
    bound = NEAR * max(1, *map(abs, ours))
    most = max(abs(a - b) for a, b in zip(theirs, ours))
    print(f"{name}: the largest difference of a logit {most:.1e}; the bound {bound:.1e}")
    return f"{name}: a logit differs by {most:.1e}, more than {bound:.1e}" if most > bound else None


def by_opencv(folder, models):
    try:
        import cv2
        import numpy
    except ImportError:
        skip("OpenCV is not there; on Debian: apt-get install python3-opencv")
    faults = []
    for name, count, *shape, classes in models:
        if b"ReduceMean" in (folder / f"{name}.onnx").read_bytes():
            print(f"{name}: not compared, OpenCV {cv2.__version__} takes no layer norm or group norm")
            continue
        logits = []
        for image in numpy.array(floats(folder / f"{name}.images.f32"), numpy.float32).reshape(count, 1, *shape):
            # One at a time: OpenCV 4.6 multiplies channels by factors for a single image only.
            net = cv2.dnn.readNetFromONNX(str(folder / f"{name}.onnx"))
            net.setInput(image)
            logits += net.forward().flatten().tolist()
        faults.append(distance(name, logits, floats(folder / f"{name}.logits.f32")))
    return faults


def by_runtime(folder, models):
    node = shutil.which("node")
    if node is None or not (ROOT / "web/node_modules/onnxruntime-web").is_dir():
        skip("node or onnxruntime-web is not there; run npm ci in web/")
    faults = []
    for name, count, *shape, classes in models:
        done = subprocess.run([node, ROOT / "tests/parity/onnx_runtime.mjs", folder / f"{name}.onnx", folder / f"{name}.images.f32",
                               folder / f"{name}.runtime.f32", *map(str, [count, *shape])], capture_output=True, text=True)
        if done.returncode:
            faults.append(f"{name}: {(done.stderr or done.stdout).strip()}")
            continue
        faults.append(distance(name, floats(folder / f"{name}.runtime.f32"), floats(folder / f"{name}.logits.f32")))
    return faults


def by_classify(folder, program):
    """Images in files, a few steps of training: probabilities of the exported model are those of `paceline classify`."""
    try:
        import cv2
        import numpy
    except ImportError:
        skip("OpenCV is not there; on Debian: apt-get install python3-opencv")
    draw = random.Random(1)
    for at in range(24):
        path = folder / "photos" / f"kind{at % 3}" / f"{at}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = bytes(min(255, max(0, 60 * (at % 3) + 40 + draw.randrange(80))) for _ in range(32 * 32 * 3))
        cv2.imwrite(str(path), numpy.frombuffer(pixels, numpy.uint8).reshape(32, 32, 3))

    def run(*words):
        return subprocess.run([program, *map(str, words)], cwd=folder, check=True, capture_output=True, text=True).stdout

    run("train", "--model", "resnet8-cifar", "--data", "folder:photos,size=32,flip=0", "--local-batch", 8, "--steps", 12, "--lr", "0.02",
        "--ema", "0.5", "--precision", "fp32", "--evaluate-every", 0, "--out", "run")
    faults = []
    for name, words in (("trained", []), ("averaged", ["--use-ema"])):
        run("classify", "run", "photos", "--top", 3, "--out", f"{name}.csv", *words)
        said = run("model", "export", "run", "--onnx", f"{name}.onnx", *words)
        if "opset 9" not in said:
            faults.append(f"export says {said}")
        net = cv2.dnn.readNetFromONNX(str(folder / f"{name}.onnx"))
        rows = list(csv.DictReader((folder / f"{name}.csv").open(newline="")))
        images = numpy.stack([cv2.imread(str(folder / row["file"]))[:, :, ::-1].transpose(2, 0, 1) for row in rows])
        net.setInput(images.astype(numpy.float32) / 255)
        logits = net.forward().astype(numpy.float64)
        theirs = numpy.exp(logits - logits.max(1, keepdims=True))
        theirs /= theirs.sum(1, keepdims=True)
        ours = [[{row[f"class{at}"]: float(row[f"probability{at}"]) for at in ("", "_2", "_3")}[f"kind{k}"] for k in range(3)]
                for row in rows]
        faults.append(distance(f"{name}, {len(rows)} images", theirs.flatten().tolist(), numpy.array(ours).flatten().tolist()))
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", type=Path)
    parser.add_argument("--program", type=lambda text: Path(text).resolve())
    parser.add_argument("--witness", required=True, choices=["checker", "opencv", "runtime", "classify"])
    parser.add_argument("--device", default="reference")
    parser.add_argument("models", nargs="*")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paceline-onnx-") as name:
        folder = Path(name)
        if asked.witness == "classify":
            faults = by_classify(folder, asked.program)
        else:
            witness = {"checker": by_checker, "opencv": by_opencv, "runtime": by_runtime}[asked.witness]
            witness(folder, [])  # ends here where it is not there
            names, faults = asked.models, []
            if names == ["zoo"]:
                listed = subprocess.run([asked.program, "model", "list", "--json"], check=True, capture_output=True, text=True).stdout
                names = [model["model"] for model in json.loads(listed)]
            for name in names:  # one at a time: together they take gigabytes
                done = subprocess.run([asked.runner, folder, asked.device, name], capture_output=True, text=True)
                if done.returncode:
                    faults.append(f"{name}: {done.stderr.strip()}")
                    continue
                faults += witness(folder, [[word if at == 0 else int(word) for at, word in enumerate(line.split())]
                                           for line in done.stdout.splitlines()])
                for file in folder.iterdir():
                    file.unlink()
    faults = [fault for fault in faults if fault]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
