"""The steps of gpu_first that say how fast it is: beside PyTorch, by op, by direction, launch by launch."""

import json
import re
import shutil
from statistics import median

from gpu_processes import Failed, Skipped, short
from gpu_results import HERE, model_of, probe, python_with_torch


def sweep(run, precision, batch):
    """Images per second of the program itself, in steps of a training, kept for other steps."""
    key = f"{precision} {batch}"
    out = run.folder / f"sweep-{precision}-{batch}"
    shutil.rmtree(out, ignore_errors=True)
    run.run([run.program("paceline"), "sweep", "--device", run.device, "--model", model_of(run), "--data", "synthetic", "--precision",
             precision, "--batches", batch, "--window-steps", 5 if run.quick else 100, "--warmup-steps", 4 if run.quick else 10,
             "--repeats", 1, "--loader-threads", 1 if run.quick else 8, "--no-measured-kernels", "--out", out])
    record = run.record_of(out)
    window, rank = record["window"], record["ranks"][0]
    ledger = sum(rank["phases_s"].values()) / rank["wall_s"]
    figures = {"images_per_s": round(window["samples"] / window["wall_s"], 1), "step_ms": round(1e3 * window["wall_s"] / window["steps"], 3),
               "ledger": round(ledger, 4), "phases_s": rank["phases_s"], "first_step_s": record.get("first_step_s")}
    for gpu in record.get("gpus") or []:
        course = gpu.get("course", {})
        figures["gpu"] = {name: median(value for value in course[name] if value is not None) for name in ("sm_mhz", "watts", "celsius")
                          if any(value is not None for value in course.get(name, []))}
        figures["gpu"]["held_back"] = gpu.get("held_back")
    run.figures[key] = run.shared.setdefault("ours", {})[key] = figures
    if abs(ledger - 1) > 0.01:
        raise Failed(f"batch {batch}, {precision}: the ledger holds {ledger:.4f} of the wall time")
    return figures["images_per_s"]


def bench(run, name, batch, *options, precision="bf16"):
    """Steps by bench_train_step: the engine alone, without loader."""
    command = [run.program("bench_train_step"), "--device", run.device, "--model", model_of(run), "--precision", precision, "--batch", batch,
               "--warmup", 4 if run.quick else 10, "--steps", 3 if run.quick else 50, *options]
    output = run.run(command)
    line = next((line for line in output.splitlines() if line.startswith("{")), None)
    if line is None:
        raise Failed(f"{short(command)} printed no figures: {output.strip()[-200:]}", command)
    figures = json.loads(line)
    figures.pop("steps_s", None)
    run.figures[name] = figures
    return figures, output


def batches(run):
    return (16, 8) if run.quick else (512, 128)


def speed(run):
    """Images per second, bf16: captured steps, then launch by launch, then the smaller batch."""
    large, less = batches(run)
    rate = sweep(run, "bf16", large)
    said = f"bf16, batch {large}: {rate:,.0f} images/s"
    run.shared["speed"] = said
    small_rate = sweep(run, "bf16", less)
    captured, _ = bench(run, "captured", large)
    eager, _ = bench(run, "launch by launch", large, "--captured", 0)
    return (f"{said}, batch {less}: {small_rate:,.0f}; engine alone {captured['images_per_s']:,.0f} (host {captured['host_ms']:.2f} ms a "
            f"step), launch by launch {eager['images_per_s']:,.0f} ({eager['host_ms']:.2f})")


def round_with_peer(run, precision, batch):
    """Ours and PyTorch's, one after the other. Returns a sentence."""
    run.needs_gpu("PyTorch is compared with on a GPU; on processors by ./x bench bench/torch_peer.py")
    python = python_with_torch(run, sees_gpu=True)
    ours = run.shared.get("ours", {}).pop(f"{precision} {batch}", {}).get("images_per_s") or sweep(run, precision, batch)
    output = run.run([python, HERE.parent / "bench" / "torch_peer.py", "--device", "cuda", "--model", model_of(run), "--precision",
                      precision, "--batch", batch, "--steps", 100])
    theirs = json.loads(output.strip().splitlines()[-1])
    rounds = run.shared.setdefault("rounds", {}).setdefault(f"{precision} {batch}", [])
    rounds.append({"ours": ours, "peer": theirs["images_per_s"], "ratio": round(ours / theirs["images_per_s"], 4),
                   "peer_uploaded": round(1e3 * batch / theirs["uploaded_step_ms"], 1)})
    run.figures[f"{precision} {batch}"] = {"peer": theirs, "rounds": rounds}
    ratios = [one["ratio"] for one in rounds]
    return (f"{precision} {batch}: {theirs['peer']} {theirs['images_per_s']:,.0f} images/s, images on the GPU; ours over it "
            f"{median(ratios):.2f}" + (f" [{min(ratios):.2f}, {max(ratios):.2f}] in {len(ratios)} rounds" if len(ratios) > 1 else ""))


def peer(run):
    """PyTorch, the same, one round."""
    return round_with_peer(run, "bf16", batches(run)[0])


def ops(run):
    """Time by op, each waited for: where the work is."""
    large, _ = batches(run)
    figures, output = bench(run, "step", large, "--by-op", 1)
    kinds = {}
    rows = re.findall(r"^(\S+) +forward +([\d.]+) ms +backward +([\d.]+) ms$", output, re.M)
    if not rows:
        raise Failed(f"no op has a time: {output.strip()[-200:]}")
    for name, forward, backward in rows:
        last = name.rsplit(".", 1)[-1]
        kind = ("convolution" if re.match(r"conv|downsample$|0$", last) else "batch norm" if re.match(r"bn|norm|1$", last) else
                "dense" if re.match(r"fc|linear|dense", last) else "other")
        times = kinds.setdefault(kind, [0.0, 0.0])
        times[0] += float(forward)
        times[1] += float(backward)
    run.figures["ops_ms"] = {name: [float(forward), float(backward)] for name, forward, backward in rows}
    run.figures["kinds_ms"] = {kind: [round(value, 3) for value in times] for kind, times in kinds.items()}
    return "forward + backward in ms: " + ", ".join(f"{kind} {a:.2f} + {b:.2f}" for kind, (a, b) in kinds.items()) + (
        f"; update {figures['update_ms']:.2f}; a step {figures['step_ms']:.2f}, each op waited for")


def measured(run):
    """--measured-kernels without fused convolutions: the engine's steps beside those by default."""
    return measured_steps(run, fused=0)


def fused(run):
    """--measured-kernels with fused convolutions, which cuDNN compiles."""
    run.needs_gpu("the processor's loops fuse nothing faster")
    return measured_steps(run, fused=1)


def measured_steps(run, fused):
    large, _ = batches(run)
    usual, _ = bench(run, "default", large)
    chosen, output = bench(run, "measured", large, "--measured-kernels", 1, "--fused", fused)
    run.figures["note"] = next((line for line in output.splitlines() if "kernels:" in line), "")
    return (f"{chosen['images_per_s']:,.0f} images/s, {chosen['images_per_s'] / usual['images_per_s']:.3f} of those by default; "
            f"{run.figures['note'][:160]}")


def fp32(run):
    """fp32 beside PyTorch, and the second round of bf16."""
    large, less = batches(run)
    said = [f"{batch}: {sweep(run, 'fp32', batch):,.0f} images/s" for batch in (large, less)]
    try:
        said += [round_with_peer(run, "fp32", large), round_with_peer(run, "bf16", large)]
    except Skipped as reason:
        run.figures["peer"] = str(reason)
    return "fp32 " + "; ".join(said)


def launches(run):
    """What a launch, a captured section, an event and a wait cost host and device."""
    run.needs_gpu()
    found = probe(run, "launches")
    return "; ".join(f"{name} {one['host_us']:.1f} us of the host, {one['device_us']:.1f} of the device"
                     for name, one in found.items() if isinstance(one, dict) and "host_us" in one)


def copies(run):
    """Bytes a second, each way."""
    run.needs_gpu()
    found = probe(run, "copies")
    return ", ".join(f"{name} {rate:.1f} GB/s" for name, rate in found.get("gb_per_s", {}).items())


def times(run):
    """The first engines of each convolution by direction, on random numbers."""
    run.needs_gpu()
    found = probe(run, "times")
    slow = []
    for problem, one in found.get("problems", {}).items():
        engines = one.get("engines") or []
        if engines:
            best = min(engine["us"] for engine in engines)
            slow.append((engines[0]["us"] / best, problem, engines[0]["us"], best))
    if not slow:
        raise Failed("no convolution has a time")
    worst = max(slow)
    return (f"{len(slow)} problems; cuDNN's first engine is slowest beside its best for {worst[1]}: {worst[2]:.0f} against "
            f"{worst[3]:.0f} us" + (f"; cut off at {found['cut_off']}" if "cut_off" in found else ""))
