#!/usr/bin/python3
"""Images of every kind and mode that Pillow writes, decoded by us and by Pillow: equal pixels, and equally upright.

    decode.py --runner build/release/tests/decode_run

What Pillow alone reads is named with our reason. Skipped (77) without Pillow.
"""
import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from PIL import Image, ImageOps, features
except ImportError as error:
    print(f"skipped: Pillow is not there ({error}); on Debian: apt-get install python3-pil")
    sys.exit(77)

SIZES = [(1, 1), (7, 5), (64, 48), (33, 130)]
# Kind: its modes, and the words of each way to save them.
WAYS = {
    "webp": (["RGB", "RGBA"], [{"lossless": True, "exact": True}, {"quality": 80}]),
    "tif": (["RGB", "RGBA", "L", "LA", "P", "1"], [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_adobe_deflate"}, {"compression": "packbits"}]),
    "gif": (["P", "L", "RGB"], [{}, {"interlace": 0}]),
    "bmp": (["RGB", "L", "P", "1"], [{}]),
}


def picture(mode, size, seed):
    """Bands with noise, so that palettes and lossy kinds have something to keep."""
    draw = random.Random(seed)
    width, height = size
    pixels = bytes(min(255, max(0, int(128 + 90 * ((x + 2 * y + 40 * c) % 37 - 18) / 18 + draw.randint(-15, 15))))
                   for y in range(height) for x in range(width) for c in range(3))
    image = Image.frombytes("RGB", size, pixels)
    if mode == "RGBA":
        image.putalpha(Image.frombytes("L", size, bytes(draw.randint(0, 255) for _ in range(width * height))))
    return image.convert(mode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True, type=Path)
    runner = parser.parse_args().runner.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), []
        for kind, (modes, ways) in WAYS.items():
            if kind == "webp" and not features.check("webp"):
                continue
            for mode in modes:
                for way, words in enumerate(ways):
                    for size in SIZES:
                        path = folder / f"{mode}-{way}-{size[0]}x{size[1]}.{kind}"
                        image = picture(mode, size, len(files))
                        try:
                            image.save(path, **words)
                        except (OSError, ValueError):  # a mode that this compression does not have
                            continue
                        files.append(path)
        for turn in range(1, 9):  # as cameras and scanners write it
            for kind in ("webp", "tif"):
                path = folder / f"turned-{turn}.{kind}"
                exif = Image.Exif()
                exif[0x0112] = turn
                words = {"tiffinfo": {274: turn}} if kind == "tif" else {"exif": exif, "lossless": True}
                picture("RGB", (9, 6), turn).save(path, **words)
                files.append(path)
        frames = [picture("RGB", (20, 12), seed) for seed in range(3)]
        for kind, words in (("gif", {}), ("webp", {"lossless": True}), ("tif", {})):
            path = folder / f"several.{kind}"
            frames[0].save(path, save_all=True, append_images=frames[1:], **words)
            files.append(path)
        done = subprocess.run([runner, *files], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"decode_run ends with {done.returncode}: {done.stderr}")
        said, wrong = done.stdout, []
        for path in files:
            with Image.open(path) as image:
                image.load()  # Pillow turns a TIFF here, and 9.4's exif_transpose() would turn it once more
                theirs = (image if path.suffix == ".tif" else ImageOps.exif_transpose(image)).convert("RGB")
            decoded = Path(f"{path}.ppm")
            if not decoded.exists():
                wrong.append(f"{path.name}: not decoded")
                continue
            with Image.open(decoded) as image:
                ours = image.convert("RGB")
            if ours.size != theirs.size:
                wrong.append(f"{path.name}: {ours.size}, Pillow {theirs.size}")
            elif ours.tobytes() != theirs.tobytes():
                off = max(abs(a - b) for a, b in zip(ours.tobytes(), theirs.tobytes()))
                wrong.append(f"{path.name}: off by up to {off}")
    print(f"{len(files)} files, {len(wrong)} other than Pillow's")
    if wrong:
        sys.exit("\n".join(wrong[:20]) + "\n" + said)


if __name__ == "__main__":
    main()
