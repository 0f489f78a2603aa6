"""Reads the records of results/records: each becomes rows of named figures.

A record is known by its keys. A row is a dict from the name of a figure to a Figure or a text; its "key" is what
`record.json#key` selects. A new kind of record is a function here and a line in READERS.
"""

import json
import re
from collections import defaultdict

from result_figures import Figure, accuracy, estimate, over, pooled, quantile, ratio, typed_digits


class Trouble(Exception):
    """A sentence for whoever edits pages or records: where, and what is wrong there."""


def times(part, name="ratio"):
    prefix = f"{name}_" if name else ""
    return Figure(part[prefix + "median"], part[prefix + "low"], part[prefix + "high"], "x")


def rounds(part, count):
    return f"{count} rounds, {part['coverage']:.0%}".replace("%", " %")


def header(record):
    """What most records say of themselves."""
    return {"commit": record.get("commit") or "", "date": (record.get("when") or record.get("created") or "")[:10]}


def against_pytorch(record):
    """bench/step_vs_torch.py"""
    model = re.search(r"training step of (\S+):", record["what"]).group(1)
    size = record.get("size") or {"resnet18-cifar": 32}.get(model, "")
    for part in record["results"]:
        yield {**header(record), "key": part["precision"], "model": f"{model}, {size}x{size}" if size else model,
               "batch": str(record["batch"]), "precision": part["precision"], "ratio": times(part),
               "paceline": Figure(part["our_images_per_s"], unit="images/s"),
               "pytorch": Figure(part["peer_images_per_s"], unit="images/s"),
               "rounds": rounds(part, len(part["rounds"]))}


def beside_busy_process(record):
    """bench/company.py"""
    for part in record["results"]:
        yield {**header(record), "key": part["name"], "program": part["name"], "batch": str(record["batch"]),
               "precision": record["precision"], "ratio": times(part), "rounds": rounds(part, len(part["rounds"])),
               "quiet_ms": Figure(quantile([r["quiet_ms"] for r in part["rounds"]], 0.5), unit="ms"),
               "busy_ms": Figure(quantile([r["busy_ms"] for r in part["rounds"]], 0.5), unit="ms")}


def cores_side_by_side(record):
    """bench/core_efficiency.py"""
    for part in record["results"]:
        figure = Figure(part["efficiency_median"], part["low"], part["high"], "%")
        yield {**header(record), "key": part["name"], "work": part["name"], "precision": record["precision"],
               "efficiency": figure, "rounds": rounds(part, len(part["rounds"]))}


def two_cores(record):
    """bench/two_cores.py"""
    model = re.search(r"training steps of ([^,]+),", record["what"]).group(1)
    count = len(record["rounds"])
    base = "2 workers of 1 core"
    for way in record["rounds"][0]:
        part = record["ratios_to_two_workers"].get(way)
        share = lambda phase: Figure(quantile([r[way]["share_of_wall"][phase] for r in record["rounds"]], 0.5), unit="%")
        yield {**header(record), "key": way, "way": way, "model": model, "precision": record["precision"],
               "ratio": times(part, "") if part else Figure(1, unit="count"),
               "step_ms": Figure(quantile([r[way]["step_ms"] for r in record["rounds"]], 0.5), unit="ms"),
               "waiting": share("exposed wait"), "transfer": share("exposed transfer"), "data_wait": share("data wait"),
               "rounds": rounds(part, count) if part else f"{count} rounds"}
    if base not in record["rounds"][0]:
        raise Trouble(f"has no rounds of '{base}', to which its ratios refer")


def rival_name(text):
    if text.startswith("staged"):
        return "paceline"
    if "MPI_Allreduce" in text:
        return "mpi"
    return "gloo" if "gloo" in text else "messages"


def collectives(record):
    """bench/comm_rivals"""
    sizes = defaultdict(dict)
    for row in record["rows"]:
        if not row["correct"]:
            raise Trouble(f"has a wrong sum: {row['rival']} at {row['bytes']} bytes")
        sizes[row["bytes"]][rival_name(row["rival"])] = estimate([1e6 * s for s in row["seconds"]], "us")
    commit = re.search(r"\((\w{7})", record["version"]).group(1)
    for count, rivals in sorted(sizes.items()):
        name = f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"
        better = min((rivals["mpi"], rivals["gloo"]), key=lambda figure: figure.value)
        yield {"key": name.replace(" ", ""), "commit": commit, "date": record["created"][:10], "bytes": name,
               "processes": str(record["processes"]), **rivals, "ratio": ratio(better, rivals["paceline"], "x")}


def layers(record):
    """bench/bench_layers; with --algorithm each layer is a row"""
    if record.get("algorithm"):
        for p in record["products"]:
            yield {"key": f"{p['layer']}, {p['direction']}", "model": record["model"], "layer": p["layer"], "direction": p["direction"], "precision": record["precision"],
                   "paceline": Figure(p["gflop_per_s"], unit="GFLOP/s"), "onednn": Figure(p["onednn_gflop_per_s"], unit="GFLOP/s"),
                   "ratio": Figure(p["ratio_median"], p["ratio_least"], p["ratio_most"]), "rounds": f"{record['rounds']} rounds"}
        return
    products = [p for p in record["products"] if not p["same_kernel"]]
    slower = str(record["slower_in_every_round"])
    common = {"precision": record["precision"], "model": record["model"], "batch": str(record["batch"]),
              "slower": slower, "rounds": f"{record['rounds']} rounds", "own": str(len(products)),
              "products": str(len(record["products"]))}
    if products:
        common["least"] = Figure(min(p["ratio_median"] for p in products))
        common["most"] = Figure(max(p["ratio_median"] for p in products))
    if "convolutions" not in record:
        yield {"key": "all", "direction": "all", **common}
        return
    for direction in ("forward", "backward data", "backward weights", "all"):
        part = record["convolutions"][direction]
        row = {"key": direction, "direction": direction, **common, "paceline": Figure(part["gflop_per_s"], unit="GFLOP/s"),
               "onednn": Figure(part["onednn_gflop_per_s"], unit="GFLOP/s"),
               "ratio": Figure(part["gflop_per_s"] / part["onednn_gflop_per_s"])}
        if part.get("share_of_tile_ceiling"):
            row["ceiling"] = Figure(part["share_of_tile_ceiling"], unit="%")
        yield row


def loader(record):
    """bench/loader_vs_torchvision.py"""
    yield {**header(record), "key": "loader", "size": f"{record['size']}x{record['size']}", "ratio": times(record),
           "paceline": Figure(record["our_images_per_cpu_s"], unit="images/s"),
           "torchvision": Figure(record["peer_images_per_cpu_s"], unit="images/s"),
           "rounds": rounds(record, len(record["rounds"]))}


def reading(record):
    """bench/reading_turns.py"""
    names = {"folder": "paceline, folder", "in_shards": "paceline, shards", "torchvision": "torchvision, folder", "python": "python, shards"}
    yield {**header(record), "key": "reading", "images": record["images_are"], "size": f"{record['size']}x{record['size']}",
           **{key: Figure(record["images_per_s"][name], unit="images/s") for key, name in names.items()},
           **{key: times(record[key], "") for key in ("folder_over_torchvision", "shards_over_folder", "shards_over_python")},
           "rounds": rounds(record["folder_over_torchvision"], len(record["rounds"]))}


def many_files(record):
    """bench/many_files.py"""
    seconds = lambda name: estimate(record[name], "s")
    yield {"key": "files", "commit": record["commit"], "files": Figure(record["files"], unit="count"),
           "walk": seconds("walk_and_write_s"), "without": seconds("first_step_without_s"),
           "with": seconds("first_step_with_s"), "peak_mb": Figure(record["manifest_peak_bytes"] / 1e6, unit="MB")}


def many_samples(record):
    """bench/many_samples.py"""
    seconds = lambda name: estimate(record[name], "s")
    yield {"key": "samples", "commit": record["commit"], "samples": Figure(record["samples"], unit="count"),
           "shards": Figure(record["shards"], unit="count"), "without": seconds("first_step_without_s"),
           "with": seconds("first_step_with_s"), "list_mb": Figure(record["peak_bytes_of_the_list"] / 1e6, unit="MB")}


def placements(record):
    """tests/ranks/placement.py"""
    for part in record["results"]:
        yield {"key": str(part["workers"]), "workers": str(part["workers"]), "error": Figure(part["error"], unit="%"),
               "packed_ms": Figure(1e3 * part["packed_s"], unit="ms"), "spread_ms": Figure(1e3 * part["spread_s"], unit="ms"),
               "predicted_ms": Figure(1e3 * part["predicted_s"], unit="ms"),
               "longer_ms": Figure(1e3 * (part["spread_s"] - part["packed_s"]), unit="ms"),
               "crossing_mb": Figure(part["crossing_bytes"] / 1e6, unit="MB")}


def two_builds(record):
    """bench/step_turns.py"""
    for part in record["cells"]:
        yield {**header(record), "key": f"{part['precision']} {part['batch']}", "batch": str(part["batch"]), "precision": part["precision"],
               "ratio": Figure(part["ratio"], part["low"], part["high"], "x"), "before_ms": Figure(part["before_ms"], unit="ms"),
               "now_ms": Figure(part["now_ms"], unit="ms"), "rounds": f"{part['turns']} turns, 95 %"}


def two_precisions(record):
    """bench/precision_turns.py"""
    for part in record["cells"]:
        yield {**header(record), "key": f"{part['model']} {part['batch']}", "model": part["model"], "batch": str(part["batch"]),
               "ratio": Figure(part["ratio"], part["low"], part["high"], "x"), "bf16_ms": Figure(part["bf16_ms"], unit="ms"),
               "fp32_ms": Figure(part["fp32_ms"], unit="ms"), "rounds": f"{part['turns']} turns, 95 %",
               "load": f"{min(part['load_of_each_start']):.1f} to {max(part['load_of_each_start']):.1f}"}


def plans_and_runs(record):
    """bench/plan_and_run.py"""
    def off(name):
        known = [abs(part[name] - 1) for part in record["rows"] if part[name] is not None]
        return Figure(max(known), unit="%")

    if any(part["written"] for part in record["rows"]):
        raise Trouble("has a plan that wrote something")
    figure = lambda value, unit: "" if value is None else Figure(value, unit=unit)
    yield {**header(record), "key": "all", "recipe": "the worst", "memory_off": off("memory_ratio"), "time_off": off("time_ratio")}
    for part in record["rows"]:
        yield {**header({**record, **part}), "key": part["recipe"], "recipe": part["recipe"], "command": part["command"], "data": part["data"],
               "planned_mb": Figure(part["planned_bytes"] / 1e6, unit="MB"), "peak_mb": Figure(part["peak_bytes"] / 1e6, unit="MB"),
               "memory": Figure(part["memory_ratio"], digits=3), "planned_s": figure(part["planned_s"] if part["seconds"] else None, "s"),
               "seconds": figure(part["seconds"], "s"), "time": figure(part["time_ratio"], "x")}


def typed(record):
    """A record made by hand of a program's output or of the log; "source" says of which."""
    units = record.get("units", {})

    def cell(column, value):
        unit = units.get(column, "x")
        if isinstance(value, str):
            return value
        values = value if isinstance(value, list) else [value]
        return Figure(*values, *[None] * (3 - len(values)), unit, None if unit == "%" else typed_digits(values, unit))

    for key, part in record["rows"].items():
        yield {**header(record), "key": key, "row": key, "source": record["source"],
               **{column: cell(column, value) for column, value in part.items()}}


def commit_of(record):
    version = record["environment"]["version"]
    found = re.search(r"\((\w{7})\w*(, modified)?\)", version)
    return found.group(1) + (" modified" if found.group(2) else "") if found else version


def training(records):
    """One paceline-record-1 of a training, or several that differ in their seed: then means."""
    first = records[0]
    if not first["epochs"]:
        raise Trouble("is no training: it has no epochs")
    # A training that was resumed has the window of its last part alone.
    whole = all(r["window"]["steps"] >= r["epochs"][-1]["updates"] for r in records)
    row = {"key": "training", "commit": ", ".join(dict.fromkeys(map(commit_of, records))), "date": records[-1]["created"][:10],
           "model": first["model"]["name"], "precision": first["precision"], "workers": str(first["workers"]),
           "local_batch": str(first["local_batch"]), "global_batch": str(first["global_batch"]),
           "rate": f"{first['learning_rate']['peak']:g}", "seeds": ", ".join(r["settings"]["seed"] for r in records),
           "updates": Figure(first["epochs"][-1]["updates"], unit="count"),
           "epochs": str(first["epochs"][-1]["epoch"]), "variant": first["variant"].replace("-", " ")}
    if whole:
        row["wall"] = Figure(sum(r["window"]["wall_s"] for r in records) / len(records), unit="s")
    else:
        row["wall"] = "in parts"
    for epochs in zip(*(r["epochs"] for r in records)):
        at, parts = epochs[0]["epoch"], [e["test_accuracy"] for e in epochs]
        if all(part is not None for part in parts):
            row["test"] = accuracy(parts, first["data"]["test_samples"])
            row[f"test@{at}"] = Figure(row["test"].value, unit="%")
        for name, key in (("validation", "validation_accuracy"), ("train", "train_accuracy")):
            if all(e.get(key) is not None for e in epochs):
                row[f"{name}@{at}"] = Figure(sum(e[key] for e in epochs) / len(epochs), unit="%")
        if all(e["test_loss"] is not None for e in epochs):
            row["loss"] = Figure(sum(e["test_loss"] for e in epochs) / len(epochs))
    seconds = [e["seconds"] for r in records for e in r["epochs"]]
    ended = seconds[:-1] if first["status"] != "complete" else seconds  # the last one of a stopped run is a part
    row["epoch_s"] = Figure(sum(ended) / len(ended), min(ended), max(ended), "s")
    row["whole_epochs"] = str(len(ended))
    return row


def steps_of(record):
    return [sum(steps) / len(steps) for steps in zip(*(rank["step_s"] for rank in record["ranks"]))]


def undisturbed(repeats):
    """Those beside which other programs kept under a tenth of the cores busy, as a report judges; all if none is left."""
    quiet = [r for r in repeats if (r["window"].get("others_cores") or 0) <= 0.1 * r["environment"]["cores"]]
    return quiet or repeats


def scaling(records):
    """The records of a `paceline scale` or `study`: a row a (scaling, batch, workers), beside one worker of as many cores."""
    cells = defaultdict(list)
    for record in records:
        if record["status"] == "complete" and record["kind"] in ("scale", "sweep"):
            scaling = record["scaling"] or "sweep"
            for mode in ("weak", "strong") if scaling == "both" else (scaling,):
                cells[mode, record["global_batch" if mode == "strong" else "local_batch"], record["workers"]].append(record)
    cells = {key: undisturbed(repeats) for key, repeats in cells.items()}
    for (mode, batch, workers), repeats in sorted(cells.items()):
        one = cells.get((mode, batch, 1))
        step = pooled([steps_of(r) for r in repeats], "s")
        first = repeats[0]
        wall = sum(rank["wall_s"] for r in repeats for rank in r["ranks"])
        share = lambda phase: Figure(sum(k["phases_s"][phase] for r in repeats for k in r["ranks"]) / wall, unit="%")
        row = {"key": f"{mode}-{batch}-{workers}", "mode": mode, "batch": str(batch), "workers": str(workers),
               "precision": first["precision"], "commit": commit_of(first), "date": first["created"][:10],
               "repeats": str(len(repeats)), "step_ms": Figure(1e3 * step.value, 1e3 * step.low, 1e3 * step.high, "ms"),
               "rate": over(first["global_batch"], step, "images/s"), "waiting": share("exposed wait"),
               "transfer": share("exposed transfer"), "data_wait": share("data wait"),
               "epoch": over(1, over(first["global_batch"] / first["data"]["train_samples"], step, "x"), "s"),
               "memory_of_plan": Figure(max(r["memory"]["peak_bytes"] / r["memory"]["plan_bytes"] for r in repeats), unit="%")}
        if one and workers > 1:
            speed = ratio(pooled([steps_of(r) for r in one], "s"), step, "x")
            part = 1 if mode == "weak" else workers
            row["efficiency"] = Figure(speed.value / part, speed.low / part, speed.high / part, "%")
            row["speedup"] = Figure(*(end * workers / part for end in (speed.value, speed.low, speed.high)), "x")
            row["one_rate"] = over(one[0]["global_batch"], pooled([steps_of(r) for r in one], "s"), "images/s")
        yield row


def span(values, unit):
    """Of some values the median, the least and the greatest: too few for an interval."""
    return Figure(quantile(values, 0.5), min(values), max(values), unit) if values else ""


def advice_under_load(record):
    """bench/advice_under_load.py: a row for each kind of load."""
    best = max(record["long"], key=lambda setup: setup["images_per_s"])
    beside = {"alone": "nothing", "constant": "a program that computes all the time", "bursts": "one that computes 20 s of every 40 s"}
    for kind, name in beside.items():
        studies = [study for study in record["studies"] if study["kind"] == kind]
        if not studies:
            continue
        advised = [study for study in studies if study["of_the_best"]]
        certainties = [study["certainty"] for study in studies]
        yield {**header(record), "key": kind, "beside": name, "studies": str(len(studies)),
               "answers": ", ".join(f"{certainties.count(one)} {one.replace('_', ' ')}" for one in sorted(set(certainties))),
               "of_the_best": span([study["of_the_best"] for study in advised], "%"),
               "stated": span([study["stated_over_long"] for study in advised if study["stated_over_long"]], "x"),
               "others": span([study["others_cores"] for study in studies if study["others_cores"] is not None], "x"),
               "seconds": span([study["seconds"] for study in studies], "s"),
               "best": f"{best['workers']} of {best['local_batch']}, {best['images_per_s']:,.0f} images/s"}
    decided = [study["of_the_best"] for study in record["studies"] if study["certainty"] == "decided" and study["of_the_best"]]
    if decided:
        yield {**header(record), "key": "decided", "studies": str(len(decided)), "least": Figure(min(decided), unit="%")}


def unread_output(record):
    """bench/unread_output.py"""
    yield {**header(record), "key": "", "pairs": str(len(record["pairs_s"])), "set_aside": str(len(record["disturbed_pairs_s"])),
           "ratio": Figure(record["ratio"], record["low"], record["high"], "x"),
           "wall": Figure(sum(read for _, read in record["pairs_s"]) / len(record["pairs_s"]), unit="s")}


def fine_tuning(record):
    """bench/fine_tuning.py"""
    needed = record["updates"]
    for way, updates in needed.items():
        yield {**header(record), "key": way, "weights": way, "target": Figure(record["target"], unit="%"),
               "updates": Figure(updates["mean"], unit="count"), "by_seed": ", ".join(f"{u:,}" for u in updates["seeds"]),
               "ratio": Figure(updates["mean"] / needed["scratch"]["mean"], unit="x")}


def memory_of_zoo(record):
    """bench/zoo_memory.py"""
    parts = [part for row in record["rows"] for part in (row["small"], row["large"])]
    yield {**header(record), "key": "all", "model": f"the worst of {len(record['rows'])}", "precision": record["precision"],
           "memory_off": Figure(max(abs(part["ratio"] - 1) for part in parts), unit="%"),
           "activations_off": Figure(max(abs(row["activations_ratio"] - 1) for row in record["rows"]), unit="%")}
    for row in record["rows"]:
        yield {**header(record), "key": row["model"], "model": row["model"], "precision": record["precision"], "image": row["image"],
               "batches": f"{row['small']['batch']}, {row['large']['batch']}", "planned_mb": Figure(row["large"]["planned"] / 1e6, unit="MB"),
               "peak_mb": Figure(row["large"]["peak"] / 1e6, unit="MB"), "memory": Figure(row["large"]["ratio"], digits=3),
               "smaller": Figure(row["small"]["ratio"], digits=3), "activations": Figure(row["activations_ratio"], digits=3)}


# A record's kind by what only it has.
READERS = [
    (lambda r: "source" in r, typed),
    (lambda r: "training step of" in r.get("what", "") and "alone" in r["what"], beside_busy_process),
    (lambda r: r.get("what", "").startswith("training step of"), against_pytorch),
    (lambda r: r.get("what", "").startswith("one-core workers"), cores_side_by_side),
    (lambda r: "ratios_to_two_workers" in r, two_cores),
    (lambda r: r.get("what", "") == "training steps of two builds", two_builds),
    (lambda r: r.get("what", "") == "training steps in bf16 and in fp32", two_precisions),
    (lambda r: "studies" in r and "long" in r, advice_under_load),
    (lambda r: r.get("what") == "unread-output", unread_output),
    (lambda r: r.get("what", "").startswith("loader:"), loader),
    (lambda r: r.get("what", "").startswith("plans against runs"), plans_and_runs),
    (lambda r: "ways" in r and "updates" in r, fine_tuning),
    (lambda r: r.get("what", "").startswith("plans of memory"), memory_of_zoo),
    (lambda r: "shards_over_python" in r, reading),
    (lambda r: "walk_and_write_s" in r, many_files),
    (lambda r: "peak_bytes_of_the_list" in r, many_samples),
    (lambda r: "rate_mbit" in r, placements),
    (lambda r: "products" in r, layers),
    (lambda r: "processes" in r and "rows" in r, collectives),
]


def load(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise Trouble(f"{path} does not exist: a table or claim names it") from None
    except json.JSONDecodeError as error:
        raise Trouble(f"{path} is no JSON: {error}") from None


def rows_of(paths):
    """The rows of one record, of one folder of a scaling's records, or of the trainings of several seeds."""
    if len(paths) == 1 and paths[0].is_dir():
        return list(scaling([load(path) for path in sorted(paths[0].glob("*.json"))]))
    records = [load(path) for path in paths]
    try:
        if all("schema" in record for record in records):
            return [training(records)]
        if len(records) == 1:
            for known, reader in READERS:
                if known(records[0]):
                    return list(reader(records[0]))
            raise Trouble("is of no kind that tools/result_records.py knows; give it a reader there")
    except (KeyError, IndexError, TypeError) as error:
        raise Trouble(f"{paths[0]} lacks what its kind has: {error!r}") from error
    except Trouble as error:
        raise Trouble(f"{paths[0]} {error}") from None
    raise Trouble(f"{paths[0]} and others: only trainings are joined by +")
