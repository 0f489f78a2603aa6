"""Strangers at the ports of a run: cases of ranks.py."""

import os
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

from launching import check, need, places, result, run, stop, train_options

SECRET = "a secret of the test"
# What a stranger says first: nothing, what other programs say, and greetings that are cut, wrong, or right up to the secret.
WORDS = (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"\0" * 5000, b"x" * (1 << 20), b"hello 1 1 a\n",
         b"paceline meeting of 000002\n", b"paceline-meeting-2 ", b"paceline-meeting-2 2 1 open 0 0\n", b"paceline-meeting-2 2 1 secret 00 00\n00\n",
         b"paceline-meeting-2 2 -1 secret 0 0\n", b"paceline-meeting-2 99999999999999999999 x\n", b"s\xff\xff\xff\xff", b"there? 7\n")


class Strangers(threading.Thread):
    """Opens `many` connections to a port, a few at a time, each with other words; some are held open to the end."""

    def __init__(self, port, many, held=120):
        super().__init__(daemon=True)
        self.port, self.many, self.most_held = port, many, held
        self.opened, self.refused, self.held = 0, 0, []

    def run(self):
        slow = []
        for number in range(self.many):
            words = WORDS[number % len(WORDS)]
            try:
                one = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            except OSError:
                self.refused += 1
                time.sleep(0.002)
                continue
            self.opened += 1
            one.setblocking(False)
            try:
                if words:
                    one.send(words)
                for other in slow[-20:]:  # a byte now and then
                    other.send(b"p")
            except OSError:
                pass
            (slow if words == b"paceline-meeting-2 " else self.held).append(one)
            for hold in (slow, self.held):
                if len(hold) > self.most_held:
                    hold.pop(0).close()

    def end(self):
        self.join()
        for one in self.held:
            one.close()


def listening(process):
    """The addresses at which a process listens: ("127.0.0.1", 4000)."""
    inodes = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(descriptor)))
        except OSError:
            pass
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                address, port = words[1].split(":")
                found.append((table if table == "tcp6" else ".".join(str(b) for b in bytes.fromhex(address)[::-1]), int(port, 16)))
    return found


def descriptors(process):
    return len(os.listdir(f"/proc/{process}/fd"))


def peak_kb(process):
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found.group(1)) if found else 0  # one that has ended has none


def wait_for(holds, what, seconds=60):
    until = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < until, what)
        time.sleep(0.01)


def strangers(args, folder):
    """What goes wrong before they meet: said in a sentence, with exit code 5 (usage: 2), and nobody waits for ever."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    options = [args.program, *train_options(folder, "--steps", "2")]
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
        code, _, err = run(options, env={**os.environ, **place, "RANK": "0"})
        check(code == 5 and "MASTER_PORT" in err and err.count("paceline:") == 1, f"a port in use: exit {code}: {err}")
        code, _, err = run(options, env={**os.environ, **place, "RANK": "1"})
        check(code == 5 and "MASTER_ADDR:MASTER_PORT" in err, f"a stranger's port: exit {code}: {err}")
    code, _, err = run(options, env={**os.environ, "RANK": "1", "WORLD_SIZE": "2"})
    check(code == 2 and err == "" or "MASTER_ADDR" in err, f"no place to meet: exit {code}: {err}")
    print("a port in use, a stranger's port and no place to meet are said")
    alone(options)


def alone(options):
    """Process 0, process 1, and process 1 whose packets are dropped: each says after ten seconds for whom it waits, and gives up
    after the time that it was given."""
    with socket.socket() as full:  # a queue that is full drops whoever wants to connect, as a firewall does
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        dropped = [{**place, "MASTER_PORT": str(full.getsockname()[1])} for place in places(2)]
        queue = [socket.socket() for _ in range(3)]
        for one in queue:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        begin = time.monotonic()
        jobs = [subprocess.Popen([str(word) for word in [*options, "--meet-within", "13"]], env=place, text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for place in (places(2)[0], places(2)[1], dropped[1])]
        said = [job.communicate(timeout=120)[1] for job in jobs]
        seconds = time.monotonic() - begin
        for one in queue:
            one.close()
    check([job.returncode for job in jobs] == [5, 5, 5] and 12 < seconds < 45, f"alone: {seconds:.0f} s: {said}")
    check("process 1 has not come to process 0" in said[0] and "contribution of process 1" in said[0], f"process 0: {said[0]}")
    for one in said[1:]:
        check("process 1 has not reached process 0" in one and "was not found" in one, f"process 1: {one}")
    check("nobody listens there: the meeting has not begun or is over" in said[1].splitlines()[0], f"process 1, alone: {said[1]}")
    check("nobody listens" not in said[2], f"process 1, whose packets are dropped: {said[2]}")
    print(f"a process alone says for whom it waits, and ends after {seconds:.0f} s (--meet-within 13)")


def trained(args, options, out, many):
    """A training of processes that meet over TCP, with `many` connections of strangers before, while and after they meet.
    Its result, the most descriptors of process 0 that were seen beyond its own, and its peak of memory."""
    own = [{**place, "PACELINE_SECRET": SECRET} for place in places(args.processes)]
    port = int(own[0]["MASTER_PORT"])
    words = [str(word) for word in [args.program, *options, "--out", out]]
    jobs, all_strangers, most, peak = [], [], 0, 0
    try:
        jobs.append(subprocess.Popen(words, env=own[0], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        wait_for(lambda: port in [at[1] for at in listening(jobs[0].pid)], "process 0 does not listen at its port")
        before = descriptors(jobs[0].pid)
        if many:
            all_strangers = [Strangers(port, many // 2), Strangers(port, many // 2)]
            for one in all_strangers:
                one.start()
            wait_for(lambda: sum(one.opened for one in all_strangers) >= many // 2, "too few strangers came in", 200)
            most = descriptors(jobs[0].pid) - before
        for place in own[1:]:
            jobs.append(subprocess.Popen(words, env=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        wait_for(lambda: any(out.glob("checkpoint-*")) or jobs[0].poll() is not None, "no checkpoint")
        if jobs[0].poll() is None:
            doors = [at for job in jobs for at in listening(job.pid)]
            check(port not in [at[1] for at in doors], f"the meeting is over, and its port is open: {doors}")
            check(all(at[0] == "127.0.0.1" for at in doors), f"all are on this host, and others can reach {doors}")
            if many:
                late = [Strangers(at[1], max(40, many // 50), 30) for at in doors]
                for one in late:
                    one.start()
                all_strangers += late
        while jobs[0].poll() is None:
            try:
                peak = max(peak, peak_kb(jobs[0].pid))
                if not any(one.is_alive() for one in all_strangers):
                    most = max(most, descriptors(jobs[0].pid) - before)
            except OSError:
                pass
            time.sleep(0.05)
        said = [job.communicate(timeout=120)[1] for job in jobs]
        check([job.returncode for job in jobs] == [0] * len(jobs), f"exit {[job.returncode for job in jobs]}: {said}")
        check(not many or sum(one.opened for one in all_strangers) > many // 20, "no strangers were there")
        if many:
            print(f"{sum(one.opened for one in all_strangers)} connections were accepted, {sum(one.refused for one in all_strangers)} refused")
    finally:
        for one in all_strangers:
            one.end()
        for job in jobs:
            stop(job)
    return result(out)[1], most, peak


def stranger(args, folder):
    """Hundreds of connections (--times: that many) that are silent, slow, large or garbage: the bytes of an undisturbed run."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    many = args.times if args.times >= 100 else 400
    options = train_options(folder, "--epochs", "150", "--checkpoint-every", "50steps")
    alone, _, peak_alone = trained(args, options, folder / "alone", 0)
    among, most, peak = trained(args, options, folder / "among", many)
    check(alone == among, "the checkpoint of a run with strangers at its ports has other bytes")
    check(most < 160, f"process 0 had {most} more descriptors than before")
    check(peak - peak_alone < 10_000, f"{peak} kB at most, {peak_alone} kB without strangers")
    print(f"{many} connections of strangers: the same bytes, at most {most} descriptors and {peak - peak_alone} kB more")


def secret(args, folder):
    """Who has no secret, or another one, or the number of another process, is told so; the others meet."""
    need(args, "paceline_gloo.so", "libgloo-dev")
    options = [args.program, *train_options(folder, "--epochs", "1"), "--meet-within", "60"]
    own = [{**place, "PACELINE_SECRET": SECRET} for place in places(2)]
    without = {name: value for name, value in own[1].items() if name != "PACELINE_SECRET"}
    words = [str(word) for word in options]
    first = subprocess.Popen([*words, "--out", str(folder / "run")], env=own[0], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for place, why in ((without, "process 0 has a secret"), ({**own[1], "PACELINE_SECRET": SECRET * 2}, "process 0 has another secret"),
                           (own[0], "cannot listen at MASTER_PORT")):
            wait_for(lambda: listening(first.pid) or first.poll() is not None, "process 0 does not listen")
            code, _, err = run(options, env=place)
            check(code == 5 and why in err and SECRET not in err, f"{why}: exit {code}: {err}")
        code, out, err = run([*options, "--out", folder / "run"], env=own[1])
        said = first.communicate(timeout=120)[1]
    finally:
        stop(first)
    check(code == 0 and first.returncode == 0, f"those who know it meet: exit {code}, {first.returncode}: {err}{said}")
    check("RANK=1 has another PACELINE_SECRET than process 0" in said, f"process 0 says it too: {said}")
    for path in (folder / "run").iterdir():
        check(SECRET.encode() not in path.read_bytes(), f"the secret is in {path}")
    twice(args, folder)
    by_file(args, folder)


def twice(args, folder):
    """RANK=1 twice, RANK=2 never: the second is told so at once, and the meeting is open, which is said."""
    options = [str(word) for word in [args.program, *train_options(folder, "--epochs", "1"), "--meet-within", "15"]]
    own = places(3)
    jobs = [subprocess.Popen(options, env=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for place in own[:2]]
    try:
        time.sleep(1)
        wait_for(lambda: listening(jobs[0].pid), "process 0 does not listen")
        code, _, err = run(options, env=own[1])
        said = [job.communicate(timeout=120)[1] for job in jobs]
    finally:
        for job in jobs:
            stop(job)
    codes = [code, *(job.returncode for job in jobs)]
    check(codes == [5, 5, 5], f"a RANK twice: exit {codes}: {err}{said}")
    check("process 1 is here already, from 127.0.0.1" in err + said[1], f"the second process: {err}{said[1]}")
    check("a second process with RANK=1" in said[0] and "is open" in said[0], f"process 0: {said[0]}")


def by_file(args, folder):
    """--meeting-secret FILE, which must be its owner's alone; `launch` makes a secret of its own."""
    file = folder / "secret"
    file.write_text(SECRET + "\n")
    file.chmod(0o644)
    options = [*train_options(folder, "--epochs", "1"), "--meeting-secret", file]
    code, _, err = run([args.program, *options], env=places(2)[0])
    check(code == 3 and "chmod 600" in err, f"others can read it: exit {code}: {err}")
    file.chmod(0o600)
    own = places(2)
    jobs = [subprocess.Popen([str(word) for word in [args.program, *options]], env=place, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, cwd=folder) for place in own]
    said = [job.communicate(timeout=120)[1] for job in jobs]
    check([job.returncode for job in jobs] == [0, 0] and "is open" not in said[0], f"a secret from a file: {said}")
    code, out, err = run([args.program, "launch", "--by", "here", "-n", "2", "--", *train_options(folder, "--epochs", "1"), "--out",
                          folder / "launched"])
    check(code == 0 and "is open" not in err and "SECRET" not in out, f"launch: exit {code}: {out}{err}")
    print("a meeting with a secret lets in who knows it, and nobody else")
