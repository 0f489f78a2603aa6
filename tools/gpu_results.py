"""The steps of gpu_first that say whether it computes what it should: versions, bits, losses, memory, refusals.

A step is a function of a Run (gpu_processes.py). It returns one sentence for the table, and leaves its figures in run.figures as
it finds them. It fails with Failed, and cannot run here with Skipped.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from gpu_processes import Failed, Skipped, first_fault, how_it_ended, is_broken

HERE = Path(__file__).resolve().parent
MODEL = "resnet18-cifar"
DEBIANS_PYTHON = "/usr/bin/python3"  # the one that Debian's PyTorch serves


def gigabytes(count):
    return f"{count / 1e9:.2f} GB"


def model_of(run):
    return "resnet8-cifar" if run.quick else MODEL


def precisions(run):
    """What the GPU computes in, what matters most first: a GPU before compute capability 8.0 has no units for bf16."""
    return ["fp32"] if run.shared.get("precision") == "fp32" else ["bf16", "fp32"]


def probe(run, part):
    """What a part of cuda_probe found. Failed with the first of what failed in it."""
    file = run.folder / f"{part}.json"
    if file.exists():
        file.unlink()
    # It begins nothing more when a quarter of the time is left: one problem may take some seconds.
    command = [run.program("cuda_probe"), part, file, "--seconds", max(1, int(run.left() * 3 / 4))]
    ended = run.end_of(command)
    try:
        found = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError:
        found = {}
    run.figures.update(found)
    if ended.code not in (0, 1) or "error" in found:
        if ended.code == 2 and not run.on_gpu:
            raise Skipped(found.get("error") or first_fault(ended.output))
        run.fail(f"{found['error']}; {how_it_ended(ended)}" if "error" in found else how_it_ended(ended), command, ended)
    if found.get("failed"):
        where, why = next(iter(found["failed"].items()))
        raise Failed(f"{where}: {why}; {len(found['failed'])} failed", command)
    return found


def cut_off(found):
    """For the end of a sentence about a part of the probe: where its time was over."""
    return f"; cut off at {found['cut_off']}" if "cut_off" in found else ""


def python_with_torch(run):
    """A python whose PyTorch sees the GPU."""
    reasons = []
    for python in dict.fromkeys([sys.executable, shutil.which("python3"), DEBIANS_PYTHON]):
        asked = [python, "-c", "import torch; print('GPU' if torch.cuda.is_available() else 'no GPU', torch.__version__)"]
        ended = run.end_of(asked, 30)
        if is_broken(ended):
            run.fail(how_it_ended(ended), asked, ended)
        if ended.code == 0 and re.search(r"^GPU ", ended.output, re.M):  # libraries may warn before it, and behind it
            return python
        reasons.append(f"{python}: {'PyTorch sees no GPU' if ended.code == 0 else 'no PyTorch'}")
    raise Skipped("; ".join(reasons))


def start(run):
    """Versions, driver, free memory, what the program sees."""
    output = run.run([run.program("paceline"), "doctor"])
    lines = [line.strip() for line in output.splitlines()]
    run.figures["doctor"] = [line for line in lines if re.search(r"GPU|CUDA|cuDNN|cuda|NCCL|processor|cores", line)][:20]
    if not run.on_gpu:
        return "no GPU: the CUDA engine on the processor, whose times say nothing about any GPU"
    if shutil.which("nvidia-smi"):
        run.end_of(["nvidia-smi", "-q"], 10)  # for the log
    found = probe(run, "device")
    run.shared["gpus"] = found.get("visible_gpus", 1)
    run.shared["precision"] = found.get("precision", "bf16")
    return (f"{found.get('name')}, driver for CUDA {found.get('cuda_of_driver')}, {gigabytes(found.get('free_bytes', 0))} of "
            f"{gigabytes(found.get('memory_bytes', 0))} free")


def kernels(run):
    """Own kernels on the GPU, bit by bit against the same kernels on the processor; some families in a process."""
    run.needs_gpu()
    return f"{run.tests('CudaKernelsOnDevice*', group=6, limit_s=20)} tests have the processor's bits{run.not_reached()}"


def convolutions(run):
    """The first engine of each convolution and dense layer against loops; twice the same bits; captured and replayed."""
    run.needs_gpu()
    return said_of_engines(run, probe(run, "first"))


def more(run):
    """The same of the first four engines of each."""
    run.needs_gpu()
    return said_of_engines(run, probe(run, "more"))


def said_of_engines(run, found):
    # Of sums in float 1e-7 is usual and TF32 gives 1e-3; a bf16 result is rounded by up to 2^-9 of its own size.
    for kind, bound in (("worst_f32", 1e-4), ("worst_bf16", 0.02)):
        error = found.get(kind, {}).get("error_by_largest", 0)
        if error is None or error > bound:
            raise Failed(f"{kind}: {error} of the largest value, more than {bound}, at {found[kind]['at']}")
    if found.get("engines_with_other_bits"):
        raise Failed(f"{found['engines_with_other_bits']} of {found['engines']} engines gave other bits the second time or captured")
    if not found.get("engines"):
        raise Failed("no engine was tried")
    within = ", ".join(f"{name} within {found[key]['error_by_largest']:.1e}" for name, key in (("bf16", "worst_bf16"), ("fp32", "worst_f32"))
                       if key in found)
    return (f"{found['engines']} engines: {within}, same bits twice; {found.get('engines_not_captured', 0)} cannot be captured"
            f"{cut_off(found)}")


def small(images=4096, batch=64):
    """Options of a training that takes a moment."""
    return ["--model", "resnet8-cifar", "--data", f"synthetic,train={images},test=64", "--global-batch", batch, "--no-measured-kernels",
            "--evaluate-every", 0]


def losses_of(run, folder):
    return [step["loss"] for step in run.record_of(folder).get("steps", [])]


def training(run):
    """A training beside the processor's: the losses. And twice: the same bits."""
    near = {"bf16": 0.02, "fp32": 1e-3}
    return run.each([lambda precision=precision: trained(run, precision, near[precision]) for precision in precisions(run)])


def trained(run, precision, near):
    steps, batch = (8, 16) if run.quick else (60, 64)
    options = [*small(batch=batch), "--precision", precision, "--steps", steps]
    first, second = (run.train(f"{precision}-{i}", *options) for i in (1, 2))
    run.same_bits(first, second, precision)
    there = losses_of(run, first)
    here = losses_of(run, run.train(f"{precision}-cpu", *options, device="cpu"))
    run.figures[precision] = {"losses": there, "losses_cpu": here}
    if len(there) != steps or len(here) != steps:
        raise Failed(f"{precision}: {len(there)} and {len(here)} losses of {steps} steps are in the records")
    worst = max(abs(a - b) for a, b in zip(there[:5], here[:5]))  # later on rounding has grown
    if not worst <= near:
        raise Failed(f"{precision}: of the first 5 losses one differs by {worst:.2g} from the processor's, more than {near}")
    if not run.quick and not sum(there[-10:]) < sum(there[:10]):
        raise Failed(f"{precision}: the loss did not fall: {there[0]:.3f} at first, {there[-1]:.3f} at last")
    return f"{precision}: losses {there[0]:.3f} to {there[-1]:.3f} in {steps} steps as on the processor, the same bits twice"


def engine(run):
    """Ops, models and optimizers on the device against the reference in double; captured steps against launches."""
    passed = run.tests("CudaEngine.*:CudaSections.*:DeviceMemory.*", group=10, limit_s=30)
    return f"{passed} tests agree with the reference, {run.figures['skipped']} skipped{run.not_reached()}"


def workers(run):
    """Two workers on one device: --shard gives the bits of one worker."""
    steps = 4 if run.quick else 20
    device = "cuda:0" if run.on_gpu else run.device  # one GPU, also where there are several
    runs = [run.train(f"workers-{n}", *small(), "--workers", n, "--shard", 16, "--steps", steps, device=device) for n in (1, 2)]
    run.same_bits(*runs, "1 and 2 workers")
    return f"{steps} steps of 1 and 2 workers with --shard: the same bits"


def resume(run):
    """Stopped in the middle of the training and resumed: the same bits."""
    epochs = [*small(192 if run.quick else 512), "--epochs", 2]
    whole = run.train("resume-whole", *epochs)
    first = min(whole.rglob("*.safetensors"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    run.same_bits(whole, run.train("resume-again", *epochs, "--resume", first), "resumed")
    return f"resumed from {first.name}: the same bits"


def too_large(run):
    """A batch that cannot fit is refused before the first step, with both numbers."""
    output = run.run([run.program("paceline"), "train", "--device", run.device, "--model", MODEL, "--data", "synthetic,train=200000",
                      "--global-batch", 200000, "--steps", 1, "--out", run.folder / "large"], expect=4)
    said = re.search(r"memory.*GB.*GB.*", output)
    if not said:
        raise Failed(f"the refusal names no two sizes: {output.strip()[-200:]}")
    return said.group(0)[:160]


def memory(run):
    """The plan of memory beside what the device says is in use, at three batches."""
    run.needs_gpu("the processor has no memory of a device")
    return run.each([lambda batch=batch: memory_of(run, batch) for batch in ((16, 32) if run.quick else (128, 512, 1024))])


def memory_of(run, batch):
    record = run.record_of(run.train(f"memory-{batch}", "--model", model_of(run), "--data", "synthetic", "--global-batch", batch, "--steps", 6,
                                     "--evaluate-every", 0))
    device = record["memory"].get("device") or {}
    use = device.get("use")
    if not use:
        raise Failed(f"batch {batch}: the record has no use of the device's memory")
    # Free memory is read before the run, when the driver's context is there already; the plan counts it all the same.
    before = use["total_bytes"] - device["available_bytes"]
    grown = use["used_bytes"] - before
    run.figures[str(batch)] = {"plan_bytes": device["plan_bytes"], "used_before_bytes": before, **use}
    if grown > device["plan_bytes"]:
        raise Failed(f"batch {batch}: the run took {gigabytes(grown)}, more than its plan of {gigabytes(device['plan_bytes'])}")
    return (f"batch {batch}: plan {gigabytes(device['plan_bytes'])}, taken {gigabytes(grown)}, of it blocks of the engine "
            f"{gigabytes(use['engines_bytes'])}; {gigabytes(before)} in use before")


def sanitizer(run):
    """compute-sanitizer over the own kernels: no wrong access, no race."""
    run.needs_gpu()
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(tool).is_file():
        raise Skipped("there is no compute-sanitizer (it is in CUDA's toolkit)")
    return run.each([lambda mode=mode: sanitized(run, tool, mode) for mode in ("memcheck", "racecheck")])


def sanitized(run, tool, mode):
    command = [tool, "--target-processes", "all", "--error-exitcode", "9", "--tool", mode, run.program("test_engine"),
               "--gtest_filter=CudaKernelsOnDevice*Small*"]
    output = run.run(command)
    if not re.search(r"(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)", output):
        raise Failed(f"{mode}: {output.strip()[-300:]}", command)
    if not re.search(r"^device: GPU \d+", output, re.M):
        raise Failed(f"{mode}: no test says that it ran on a GPU")
    run.figures[mode] = "nothing found"
    return f"{mode} found nothing in the small cases of all kernels"


def nccl(run):
    """Several GPUs by NCCL: collectives, and the bits of one worker with --shard."""
    run.needs_gpu()
    if "gpus" not in run.shared:
        run.shared["gpus"] = probe(run, "device").get("visible_gpus", 1)
    count = run.shared["gpus"]
    if count < 2:
        raise Skipped("one GPU: NCCL joins two or more")
    runs = [run.train(f"nccl-{n}", *small(), "--workers", n, "--shard", 16, "--steps", 20) for n in (1, 2)]
    run.same_bits(*runs, "one GPU and two")
    carried = run.record_of(runs[1])["communication"]["communicator"]
    output = run.run([run.program("paceline"), "comm", "--device", "cuda", "--workers", count, "--out", run.folder / "comm"])
    run.figures["comm"] = output.strip().splitlines()[-12:]
    if carried != "nccl":
        raise Failed(f"two GPUs exchanged gradients through {carried}, not NCCL")
    return f"{count} GPUs: the bits of one worker with --shard; comm --device cuda ran"


def large(run):
    """Tensors of more than 2^31 elements."""
    run.needs_gpu()
    if "bf16" not in precisions(run):
        raise Skipped("its tensors are bf16, for which this GPU has no units")
    found = probe(run, "large")
    errors = [one["error_by_largest_of_last_sample"] for one in found.values() if isinstance(one, dict)]
    if not errors or any(error is None or error > 0.02 for error in errors):
        raise Failed(f"the last sample is wrong: {errors} of its largest value")
    return f"{len(errors)} directions: the last sample within {max(errors):.1e}"


def plans(run):
    """Engines that cuDNN offers for this GPU beside those for a described H100."""
    run.needs_gpu()
    taken = probe(run, "plans").get("taken", {})
    return ", ".join(f"{name}: {count}" for name, count in taken.items())


def mnist(run):
    """One epoch of MNIST learns it."""
    if not run.settings.mnist:
        raise Skipped("no MNIST files (--mnist DIR)")
    if run.quick:
        raise Skipped("60,000 images are not quick")
    record = run.record_of(run.train("mnist", "--model", "mnist-cnn", "--data", f"mnist:{run.settings.mnist}", "--global-batch", 128,
                                     "--optimizer", "adam", "--epochs", 1))
    accuracy = record["epochs"][-1]["test_accuracy"]
    run.figures.update(test_accuracy=accuracy, seconds=record["epochs"][-1]["seconds"])
    if accuracy is None or accuracy < 0.97:
        raise Failed(f"the test accuracy is {accuracy}")
    return f"{100 * accuracy:.2f} % on the test set after an epoch of {run.figures['seconds']:.1f} s"


def parity(run):
    """20 losses beside those that PyTorch computed in fp64 (tests/parity/curves)."""
    script = HERE.parent / "tests" / "parity" / "parity.py"
    if not script.is_file():
        raise Skipped("tests/parity is not here")
    command = [sys.executable, script, "--runner", run.program("parity_run"), "--model", "mnist-cnn", "--device", run.device, "--threads", "2",
               "--channels", "1", "--size", "28", "--batch", "32", "--lr", "0.01", "--margin", "5e-6"]
    ended = run.end_of(command)
    if ended.code == 77:
        raise Skipped(ended.output.strip().splitlines()[-1])
    if ended.code != 0 or ended.is_late:
        run.fail(how_it_ended(ended), command, ended)
    return f"as PyTorch: {ended.output.strip().splitlines()[-1][:160]}"


def libraries(run):
    """cuDNN's plans made for a described H100, without a device."""
    found = probe(run, "libraries")
    return f"cuDNN {found['cudnn']['version']}: plans of {len(found['plans_for_described_h100'])} problems"
