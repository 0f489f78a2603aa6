#!/usr/bin/python3
"""Each operation of TrivialAugment, at each strength and with both signs, by us and by torchvision's TrivialAugmentWide on Pillow's
images: equal in every pixel. Strengths are equal steps rounded to fp32; torch.linspace is off by a digit in the last place, which depends on
the processor.

    augment.py --runner build/release/tests/augment_run

Skipped (77) without torchvision or Pillow.
"""
import argparse
import random
import subprocess
import sys

try:
    import torch
    from PIL import Image
    from torchvision.transforms import InterpolationMode, autoaugment
except ImportError as error:
    print(f"skipped: torchvision is not there ({error}); on Debian: apt-get install python3-torchvision")
    sys.exit(77)

STRENGTHS = 31


def picture(kind, width, height, channels):
    draw = random.Random(f"{kind}-{width}-{height}-{channels}")
    if kind == "noise":
        return bytes(draw.randrange(256) for _ in range(width * height * channels))
    if kind == "flat":
        return bytes([77] * (width * height * channels))
    return bytes(min(255, max(0, 40 + 3 * (x % 40) + 2 * y + 25 * c + draw.randint(-9, 9)))  # soft, of few levels
                 for y in range(height) for x in range(width) for c in range(channels))


def strengths_of(name, theirs):
    """Ours, which are torchvision's up to rounding."""
    if theirs.dtype != torch.float32 or theirs.ndim == 0:
        return [float(theirs.item() if theirs.ndim == 0 else theirs[i].item()) for i in range(STRENGTHS)]
    first, last = theirs[0].double().item(), theirs[-1].double().item()
    ours = (first + (last - first) * torch.arange(STRENGTHS, dtype=torch.float64) / (STRENGTHS - 1)).float()
    if not torch.allclose(ours, theirs, rtol=0, atol=3e-7 * max(first, last)) or (name.startswith("Translate") and not torch.equal(ours.trunc(), theirs.trunc())):
        sys.exit(f"augment: the strengths of {name} are {theirs.tolist()}, and not {ours.tolist()}")
    return ours.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    runner = parser.parse_args().runner
    space = autoaugment.TrivialAugmentWide()._augmentation_space(STRENGTHS)
    compared, wrong = 0, []
    for kind, width, height, channels in [("noise", 32, 32, 3), ("soft", 32, 32, 3), ("soft", 28, 28, 1), ("soft", 41, 30, 3), ("noise", 5, 64, 3),
                                          ("flat", 8, 8, 3), ("noise", 1, 1, 3), ("soft", 96, 96, 3), ("noise", 2, 7, 1)]:
        pixels = picture(kind, width, height, channels)
        image = Image.frombytes("RGB" if channels == 3 else "L", (width, height), pixels)
        ours = subprocess.run([runner, str(height), str(width), str(channels)], input=pixels, check=True, capture_output=True).stdout
        for name, (strengths, is_signed) in space.items():
            for magnitude in strengths_of(name, strengths):
                for sign in (1, -1):
                    want = autoaugment._apply_op(image, name, sign * magnitude if is_signed else magnitude, InterpolationMode.NEAREST, None).tobytes()
                    got, ours = ours[:len(want)], ours[len(want):]
                    compared += 1
                    if got != want:
                        off = [abs(a - b) for a, b in zip(got, want, strict=True)]
                        wrong.append(f"{kind} {width}x{height}x{channels}: {name} {sign * magnitude:.4g}: {sum(d > 0 for d in off)} bytes differ, by up to {max(off)}")
        if ours:
            sys.exit("augment: our side has more operations than torchvision")
    for line in wrong[:40]:
        print(line)
    print(f"{compared} images compared with torchvision's, {len(wrong)} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
