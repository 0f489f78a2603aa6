"""The steps of gpu_first that say how fast it is: beside PyTorch, by op, by direction, launch by launch."""

import json
import re
from statistics import median

from gpu_processes import Failed, short
from gpu_results import HERE, cut_off, model_of, precisions, probe, python_with_torch


def rate(run, precision, batch):
    """Images per second of the program itself, in steps of a training; kept for the comparison with PyTorch."""
    out = run.train(f"steps-{precision}-{batch}", "--model", model_of(run), "--data", "synthetic", "--precision", precision, "--global-batch",
                    batch, "--window-steps", 5 if run.quick else 100, "--warmup-steps", 4 if run.quick else 10, "--loader-threads",
                    1 if run.quick else 8, "--no-measured-kernels")
    record = run.record_of(out)
    window, rank = record["window"], record["ranks"][0]
    run.shared.setdefault("images_on", {})[f"{precision} {batch}"] = record.get("data", {}).get("images_on", "host")
    figures = {"images_per_s": round(window["samples"] / window["wall_s"], 1), "step_ms": round(1e3 * window["wall_s"] / window["steps"], 3),
               "ledger": round(sum(rank["phases_s"].values()) / rank["wall_s"], 4), "phases_s": rank["phases_s"],
               "first_step_s": record.get("first_step_s")}
    for gpu in record.get("gpus") or []:
        course = gpu.get("course", {})
        figures["gpu"] = {name: median(value for value in course[name] if value is not None) for name in ("sm_mhz", "watts", "celsius")
                          if any(value is not None for value in course.get(name, []))}
        figures["gpu"]["held_back"] = gpu.get("held_back")
    run.figures[f"{precision} {batch}"] = figures
    run.shared.setdefault("rates", {})[f"{precision} {batch}"] = figures["images_per_s"]
    return figures


def said_of_rate(run, precision, batch):
    """A sentence; Failed, with the rate, where the ledger does not close."""
    figures = rate(run, precision, batch)
    said = f"{precision}, batch {batch}: {figures['images_per_s']:,.0f} images/s"
    if precision == precisions(run)[0]:
        run.shared.setdefault("speed", said)  # the first of them is the figure that matters most
    if abs(figures["ledger"] - 1) > 0.01:
        raise Failed(f"the ledger holds {figures['ledger']:.4f} of the wall time ({said})")
    return said


def bench(run, name, batch, *options):
    """Steps by bench_train_step: the engine alone, without loader."""
    command = [run.program("bench_train_step"), "--device", run.device, "--model", model_of(run), "--precision", precisions(run)[0],
               "--batch", batch, "--warmup", 4 if run.quick else 10, "--steps", 3 if run.quick else 50, *options]
    output = run.run(command)
    figures = figures_in(output, command)
    figures.pop("steps_s", None)
    run.figures[name] = figures
    return figures, output


def figures_in(output, command):
    """The last line of JSON of an output: libraries may warn around it."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise Failed(f"no figures: {output.strip()[-200:]} ({short(command)})", [str(word) for word in command])


def batches(run):
    return (16, 8) if run.quick else (512, 128)


def speed(run):
    """Images per second at two batches; then the engine alone: captured steps beside steps launch by launch."""
    large, less = batches(run)
    precision = precisions(run)[0]

    def engine_alone():
        steps, _ = bench(run, "captured", large)
        run.shared.setdefault("speed", f"{precision}, batch {large}: {steps['images_per_s']:,.0f} images/s (engine alone)")
        return f"engine alone {steps['images_per_s']:,.0f} ({steps['steps']}; host {steps['host_ms']:.2f} ms a step)"

    def launches_alone():
        steps, _ = bench(run, "launch by launch", large, "--captured", 0)
        run.shared.setdefault("speed", f"{precision}, batch {large}: {steps['images_per_s']:,.0f} images/s (engine alone, launch by launch)")
        return f"launch by launch {steps['images_per_s']:,.0f} (host {steps['host_ms']:.2f} ms)"

    return run.each([lambda: said_of_rate(run, precision, large), engine_alone, launches_alone, lambda: said_of_rate(run, precision, less)])


def round_with_peer(run, precision, batch):
    """Ours and PyTorch's, one after the other. Returns a sentence."""
    run.needs_gpu("PyTorch is compared with on a GPU; on processors by ./x bench bench/torch_peer.py")
    python = python_with_torch(run)
    key = f"{precision} {batch}"
    ours = run.shared.get("rates", {}).pop(key, None) or rate(run, precision, batch)["images_per_s"]
    command = [python, HERE.parent / "bench" / "torch_peer.py", "--device", "cuda", "--model", model_of(run), "--precision", precision,
               "--batch", batch, "--steps", 100]
    theirs = figures_in(run.run(command), command)
    # Both keep the images on the GPU, or both upload each batch.
    images_on = run.shared["images_on"][key]
    uploaded = round(1e3 * batch / theirs["uploaded_step_ms"], 1)
    rate_of_peer = theirs["images_per_s"] if images_on == "device" else uploaded
    rounds = run.shared.setdefault("rounds", {}).setdefault(key, [])
    rounds.append({"ours": ours, "peer": rate_of_peer, "ratio": round(ours / rate_of_peer, 4), "images_on": images_on,
                   "peer_uploaded": uploaded})
    run.figures[f"peer {key}"] = {"peer": theirs, "rounds": rounds}
    ratios = [one["ratio"] for one in rounds]
    return (f"{key}: {theirs['peer']} (eager) {rate_of_peer:,.0f} images/s, "
            f"{'both with images on the GPU' if images_on == 'device' else 'both upload each batch'}; Paceline / PyTorch "
            f"{median(ratios):.2f}" + (f" [{min(ratios):.2f}, {max(ratios):.2f}] in {len(ratios)} rounds" if len(ratios) > 1 else ""))


def peer(run):
    """PyTorch, the same, one round."""
    return round_with_peer(run, precisions(run)[0], batches(run)[0])


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
        f"; update {figures['update_ms']:.2f}; a step {figures['step_ms']:.2f}, each op waited for by the host")


def measured(run):
    """--measured-kernels: the engine's steps beside those by default."""
    large, _ = batches(run)
    usual, _ = bench(run, "default", large)
    chosen, output = bench(run, "measured", large, "--measured-kernels", 1)
    run.figures["note"] = next((line for line in output.splitlines() if "kernels:" in line), "")
    return (f"{chosen['images_per_s']:,.0f} images/s, {chosen['images_per_s'] / usual['images_per_s']:.3f} of those by default; "
            f"{run.figures['note'][:160]}")


def fp32(run):
    """fp32, beside PyTorch, and the second round of bf16."""
    large, less = batches(run)
    parts = [lambda: said_of_rate(run, "fp32", large), lambda: said_of_rate(run, "fp32", less)]
    if run.on_gpu:
        parts += [lambda precision=precision: round_with_peer(run, precision, large) for precision in reversed(precisions(run))]
    return run.each(parts)


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
            f"{worst[3]:.0f} us{cut_off(found)}")
