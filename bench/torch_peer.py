#!/usr/bin/python3
"""Times a training step of a model of the zoo in plain PyTorch, as the peer of step_vs_torch.py and tools/gpu_first.
Forward, loss, backward, SGD with momentum and weight decay; channels last; bf16 by autocast; one process, no DistributedDataParallel. The models are those of the parity tests, with dropout put back.

usage: torch_peer.py --model mnist-cnn|resnet18|resnet18-cifar|NAME of torchvision [--size 224] [--batch 32] [--threads 2]
                     [--precision fp32|bf16] [--steps 3] [--device cpu|cuda]

Prints one JSON line with step_ms: on the processor the median step after two that warm up. On a GPU the mean of --steps steps
after ten, without a wait between them: images on the GPU, and beside it uploaded_step_ms, each batch uploaded from pinned memory;
cuDNN's benchmark mode on, fused SGD where PyTorch has it, no TF32. Needs python3-torch; exit code 3: it sees no GPU.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "parity"))
import models  # noqa: E402


class MnistCnn(models.MnistCnn):
    def __init__(self, *shape):
        super().__init__(*shape)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = torch.flatten(self.dropout1(F.max_pool2d(x, 2)), 1)
        return self.fc2(self.dropout2(F.relu(self.fc1(x))))


def make(name, size):
    channels = 1 if name == "mnist-cnn" else 3
    net = MnistCnn(channels, 10, size, size) if name == "mnist-cnn" else models.make(name, channels, size, size, 10)
    return net.to(memory_format=torch.channels_last), channels


def batch_of(args, channels):
    images = torch.randn(args.batch, channels, args.size, args.size).contiguous(memory_format=torch.channels_last)
    return images, torch.randint(0, 10, (args.batch,))


def figures(args, seconds):
    return {"step_ms": round(seconds * 1e3, 3), "images_per_s": round(args.batch / seconds, 1)}


def steps_on_processor(args):
    net, channels = make(args.model, args.size)
    x, y = batch_of(args, channels)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    loss_of = nn.CrossEntropyLoss()
    times = []
    for step in range(args.steps + 2):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            logits = net(x)
        loss_of(logits.float(), y).backward()
        optimizer.step()
        if step >= 2:
            times.append(time.perf_counter() - begin)
    return figures(args, statistics.median(times))


def steps_on_gpu(args):
    if not torch.cuda.is_available():
        print("torch_peer.py: PyTorch sees no GPU", file=sys.stderr)
        sys.exit(3)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    net, channels = make(args.model, args.size)
    net = net.cuda().train()
    rule = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
    try:
        optimizer = torch.optim.SGD(net.parameters(), **rule, fused=True)
        kind = "fused"
    except (TypeError, RuntimeError):  # an older PyTorch
        optimizer = torch.optim.SGD(net.parameters(), **rule, foreach=True)
        kind = "foreach"
    pinned = [part.pin_memory() for part in batch_of(args, channels)]
    on_gpu = [part.cuda() for part in pinned]

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            loss = F.cross_entropy(net(x).float(), y)
        loss.backward()
        optimizer.step()

    def mean_step(next_batch):
        for _ in range(10):
            step(*next_batch())
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(args.steps):
            step(*next_batch())
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / args.steps

    resident = mean_step(lambda: on_gpu)
    uploaded = mean_step(lambda: [part.cuda(non_blocking=True) for part in pinned])
    return {**figures(args, resident), "uploaded_step_ms": round(uploaded * 1e3, 3), "sgd": kind, "gpu": torch.cuda.get_device_name()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet18-cifar")
    parser.add_argument("--size", type=int, default=32, help="height and width of the images")
    parser.add_argument("--precision", default="bf16", choices=["fp32", "bf16"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1, choices=[1])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    time_steps = steps_on_gpu if args.device == "cuda" else steps_on_processor
    print(json.dumps({"peer": "torch " + torch.__version__, "model": args.model, "size": args.size,
                      "batch": args.batch, "threads": args.threads, "precision": args.precision, **time_steps(args)}))


if __name__ == "__main__":
    main()
