#!/usr/bin/python3
"""`paceline classify` beside PyTorch with the same weights and Pillow's pixels: equal classes, probabilities within 1e-3.

    classify.py --program build/release/paceline [--images 1000]

Images are made here: JPEG, PNG, grey, of odd shapes, smaller and larger than what the network sees. Training
lasts a few steps, so that the batch norms have statistics. Skipped (77) without PyTorch or Pillow.
"""
import argparse
import csv
import json
import math
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    from PIL import Image
except ImportError as error:
    print(f"skipped: PyTorch or Pillow is not there ({error}); on Debian: apt-get install python3-torch python3-pil")
    sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402

NEAR = 1e-3  # of a probability
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHAPES = [(32, 32), (33, 47), (128, 128), (146, 146), (147, 301), (500, 375), (97, 640), (20, 24), (1, 9), (700, 705), (256, 255)]


def picture(at, kind):
    """A picture of class `kind`: its own frequency and colour, with noise."""
    draw = random.Random(at)
    width, height = draw.choice(SHAPES)
    turn, phase = draw.uniform(0, math.pi), draw.uniform(0, 6)
    x = torch.arange(width).float()[None, :] / width
    y = torch.arange(height).float()[:, None] / height
    wave = torch.sin((x * math.cos(turn) + y * math.sin(turn)) * (4 + 9 * kind) + phase)
    noise = torch.randn((height, width, 3), generator=torch.Generator().manual_seed(at))
    colour = torch.tensor([[80, 150, 200], [190, 90, 110], [120, 200, 90]][kind]).float()
    pixels = (colour + 70 * wave[:, :, None] + 12 * noise).clamp(0, 255).byte()
    image = Image.frombytes("RGB", (width, height), bytes(pixels.flatten().tolist()))
    return image.convert("L") if at % 7 == 0 else image


def save(image, path, at):
    if at % 3 == 0:
        image.save(path.with_suffix(".png"))
    else:
        image.save(path.with_suffix(".jpg"), quality=92, subsampling=0 if at % 2 else 2)


def seen(path, size, resize):
    """What evaluation sees of a file, by Pillow: torchvision's Resize(resize) and CenterCrop(size); without `resize` all that fits."""
    image = Image.open(path).convert("RGB")
    width, height = image.size
    if resize:
        shorter = min(width, height)
        wide, tall = resize * width // shorter, resize * height // shorter
        image = image.resize((wide, tall), Image.BILINEAR)
        left, top = round((wide - size) / 2), round((tall - size) / 2)
        image = image.crop((left, top, left + size, top + size))
    else:
        side = min(width, height)
        left, top = (width - side) / 2, (height - side) / 2
        image = image.resize((size, size), Image.BILINEAR, box=(left, top, left + side, top + side))
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).reshape(size, size, 3)
    values = (pixels.float() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    return values.permute(2, 0, 1)


def weights_of(path):
    bytes_ = path.read_bytes()
    (length,) = struct.unpack("<Q", bytes_[:8])
    header = json.loads(bytes_[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or name.startswith("optimizer."):
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        kind = torch.float32 if entry["dtype"] == "F32" else torch.int64
        tensors[name] = torch.frombuffer(bytearray(bytes_[begin:end]), dtype=kind).reshape(entry["shape"])
    return tensors


def compare(program, folder, count, model, size, resize, rate):
    """Sentences on what differs, and the largest difference of a probability."""
    spec = f"folder:train,size={size},flip=0" + (",eval-resize=fit" if size >= 128 and not resize else "")
    subprocess.run([program, "train", "--model", model, "--data", spec, "--local-batch", "8", "--steps", "12", "--lr", rate,
                    "--precision", "fp32", "--evaluate-every", "0", "--out", f"run-{size}-{resize}"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    run = folder / f"run-{size}-{resize}"
    table = folder / f"{size}-{resize}.csv"
    subprocess.run([program, "classify", run, "photos", "--top", "3", "--out", table], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    twin = models.make(model, 3, size, size, 3)
    twin.load_state_dict(weights_of(max(run.glob("checkpoint-*.safetensors"))))
    twin.eval()
    faults, most = [], 0
    rows = list(csv.DictReader(table.open(newline="")))
    if len(rows) != count:
        faults.append(f"{len(rows)} rows for {count} images")
    with torch.no_grad():
        for begin in range(0, len(rows), 50):
            part = rows[begin:begin + 50]
            theirs = torch.softmax(twin(torch.stack([seen(folder / row["file"], size, resize) for row in part])).double(), 1)
            for row, expected in zip(part, theirs):
                ours = {row[f"class{at}"]: float(row[f"probability{at}"]) for at in ("", "_2", "_3")}
                difference = max(abs(ours[f"kind{k}"] - expected[k].item()) for k in range(3))
                most = max(most, difference)
                best = expected.argsort(descending=True)
                is_tie = (expected[best[0]] - expected[best[1]]).item() < 2 * NEAR
                if difference > NEAR or (row["class"] != f"kind{best[0].item()}" and not is_tie):
                    faults.append(f"{row['file']}: {ours} here, {expected.tolist()} by PyTorch")
    print(f"{model}, {size}x{size}, {'resized to ' + str(resize) + ' and cropped' if resize else 'all that fits'}: "
          f"{len(rows)} images, the largest difference of a probability {most:.1e}, {len(faults)} beyond {NEAR}")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--images", type=int, default=66)
    asked = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for at in range(72):
            path = folder / "train" / f"kind{at % 3}" / str(at)
            path.parent.mkdir(parents=True, exist_ok=True)
            save(picture(10_000 + at, at % 3), path, at)
        (folder / "photos" / "more").mkdir(parents=True)
        for at in range(asked.images):
            save(picture(at, at % 3), folder / "photos" / ("more" if at % 2 else ".") / str(at), at)
        faults = []
        for model, size, resize, rate in (("resnet8-cifar", 32, 0, "0.02"), ("resnet8-cifar", 128, 146, "0.02"), ("resnet8-cifar", 128, 0, "0.02")):
            faults += compare(asked.program, folder, asked.images, model, size, resize, rate)
    print("\n".join(faults[:10]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
