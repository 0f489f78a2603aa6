#!/usr/bin/python3
"""Mixed images and their labels beside PyTorch: images as torchvision's reference recipe mixes a batch of two, for our factors and boxes; the
distribution of factors beside torch.distributions; losses and gradients of two labels beside F.cross_entropy of probabilities.

    mix.py --runner build/release/tests/mix_run

Skipped (77) without torch.
"""
import argparse
import struct
import subprocess
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"skipped: torch is not there ({error}); on Debian: apt-get install python3-torch")
    sys.exit(77)


def floats(tensor):
    return tensor.contiguous().view(-1).numpy().tobytes()


def mixed_by_torch(batch, is_cut, share, box):
    """RandomMixup and RandomCutmix of vision/references/classification/transforms.py after their draws: each image with the one before it."""
    rolled = batch.roll(1, 0)
    if is_cut:
        top, left, height, width = box
        result = batch.clone()
        result[:, top:top + height, left:left + width] = rolled[:, top:top + height, left:left + width]
        return result, 1 - height * width / (batch.shape[1] * batch.shape[2])
    return batch * (1 - share) + rolled * share, 1 - share


def images(runner):
    compared = 0
    for height, width, channels in [(32, 32, 3), (28, 28, 1), (17, 40, 3), (1, 1, 3)]:
        batch = torch.randn(2, height, width, channels)
        for mixup, cutmix in [(0.2, 0), (0, 1), (0.4, 1)]:
            pairs = 60
            out = subprocess.run([runner, "images", str(height), str(width), str(channels), str(mixup), str(cutmix), str(pairs)], input=floats(batch),
                                 check=True, capture_output=True).stdout
            rows = torch.frombuffer(bytearray(out), dtype=torch.float32).view(pairs, 6 + batch.numel())
            for row in rows:
                is_cut, share = bool(row[0]), row[1].item()
                ours = row[6:].view_as(batch)
                theirs, factor = mixed_by_torch(batch, is_cut, share, [int(value) for value in row[2:6]])
                if not torch.allclose(ours, theirs, rtol=1e-6, atol=1e-6) or abs(factor - (1 - share)) > 1e-6 or (is_cut and not torch.equal(ours, theirs)):
                    sys.exit(f"mix: images of {height}x{width}x{channels} differ from torchvision's for {row[:6].tolist()}")
                compared += 1
    print(f"mix: {compared} pairs are mixed as torchvision mixes them")


def factors(runner):
    pairs = 20000
    for a in (0.2, 1.0):
        out = subprocess.run([runner, "images", "1", "1", "1", str(a), "0", str(pairs)], input=floats(torch.zeros(2)), check=True, capture_output=True).stdout
        ours = torch.frombuffer(bytearray(out), dtype=torch.float32).view(pairs, 8)[:, 1].double().sort().values
        theirs = torch.distributions.Beta(torch.tensor(a).double(), torch.tensor(a).double()).sample((10 * pairs,))
        theirs = ((theirs * 2 ** 24).round() / 2 ** 24).sort().values  # as ours are rounded: of A = 0.2 many are below
        # Kolmogorov and Smirnov, exceeded by one in a thousand.
        at = torch.cat([ours, theirs])
        gap = (torch.searchsorted(ours, at, right=True) / pairs - torch.searchsorted(theirs, at, right=True) / (10 * pairs)).abs().max().item()
        allowed = 1.95 * (1.1 / pairs) ** 0.5
        if gap > allowed:
            sys.exit(f"mix: factors of Beta({a}, {a}) are another distribution: {gap:.4f} > {allowed:.4f}")
        print(f"mix: the factors of Beta({a}, {a}) lie within {gap:.4f} of torch's (at most {allowed:.4f})")


def losses(runner):
    worst = 0
    for samples, classes in [(1, 2), (7, 10), (40, 101)]:
        for smoothing in (0.0, 0.1):
            for is_weighted in (False, True):
                logits = (3 * torch.randn(samples, classes, dtype=torch.float64)).requires_grad_()
                weights = torch.rand(classes, dtype=torch.float64) + 0.5 if is_weighted else torch.ones(classes, dtype=torch.float64)
                labels, second, share = torch.randint(classes, (samples,)), torch.randint(classes, (samples,)), torch.rand(samples)
                data = floats(logits.detach()) + floats(weights) + floats(labels.int()) + b"".join(
                    struct.pack("if", one, part) for one, part in zip(second.tolist(), share.tolist()))
                out = subprocess.run([runner, "loss", str(samples), str(classes), str(smoothing)], input=data, check=True, capture_output=True).stdout
                ours = torch.frombuffer(bytearray(out), dtype=torch.float64)
                part = share.double().unsqueeze(1)
                target = (1 - part) * F.one_hot(labels, classes) + part * F.one_hot(second, classes)
                loss = F.cross_entropy(logits, target, weight=weights, label_smoothing=smoothing, reduction="sum")
                loss.backward()
                error = max(abs(ours[0].item() - loss.item()) / loss.item(), (ours[1:].view_as(logits) - logits.grad).abs().max().item())
                if error > 1e-12:
                    sys.exit(f"mix: loss or gradient of {samples} samples in {classes} classes are off by {error}")
                worst = max(worst, error)
    print(f"mix: losses and gradients of two labels are those of F.cross_entropy, within {worst:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", required=True)
    runner = parser.parse_args().runner
    torch.manual_seed(1)
    images(runner)
    factors(runner)
    losses(runner)


if __name__ == "__main__":
    main()
