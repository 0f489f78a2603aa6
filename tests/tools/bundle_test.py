#!/usr/bin/env python3
"""The bundle, the wheel, the image, the Debian package and an installed tree, used where nothing else is.

    bundle_test.py --build build/release [CASE..]

In a root that holds the bundle and nothing else: training, `launch`, a report page, a download by https. Moved, behind links, with
spaces in its path, on a read-only mount, beside broken libraries. Everywhere the checkpoint of the plain build, byte for byte.
Needs root for roots of its own; ends with 77 where that is not allowed.
"""

import argparse
import functools
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
TRAIN = ["train", "--model", "mlp.toml", "--data", "synthetic,train=240,test=60", "--precision", "fp32", "--threads", "1", "--no-pin",
         "--local-batch", "24", "--lr", "0.05", "--epochs", "2", "--out", "out"]
MODEL = '[[layer]]\nop = "dense"\nname = "a"\nfeatures = 32\n[[layer]]\nop = "relu"\n' \
        '[[layer]]\nop = "dense"\nname = "b"\nfeatures = "classes"\n'
# What it reads of the machine: its description, the zone of its clock, names of hosts, the settings of OpenSSL.
READ = ("/proc/", "/sys/", "/dev/", "/etc/localtime", "/usr/share/zoneinfo", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf",
        "/etc/resolv.conf", "/usr/lib/ssl/", "/etc/ssl/", "/etc/ld.so.cache", "/etc/os-release", "/usr/lib/os-release", "/etc/passwd", "/etc/machine-id")


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def run(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **{"timeout": 300, **more})
    return done.returncode, done.stdout, done.stderr


def right(words, **more):
    code, out, err = run(words, **more)
    check(code == 0, f"{words}: exit {code}: {out}{err}")
    return out


def checkpoint(folder):
    return sorted(folder.glob("checkpoint-0*.safetensors"))[-1].read_bytes()


def in_root(root, words, environment=()):
    """`words` in `root`, in which /proc, /sys and /dev are the machine's, as in every container."""
    script = 'for f in proc sys dev; do mkdir -p "$0/$f"; mount --rbind /$f "$0/$f"; done; exec chroot "$0" "$@"'
    return ["unshare", "--mount", "sh", "-c", script, root, *words], {"env": {"PATH": os.environ["PATH"], **dict(environment)}}


def lone_root(folder, tree):
    root = folder / "root"
    shutil.copytree(tree, root / "opt/paceline", symlinks=True)
    for name in ("proc", "sys", "dev", "tmp"):
        (root / name).mkdir()
    (root / "mlp.toml").write_text(MODEL)
    return root


def plain_run(args, folder):
    """The plain build's training: its checkpoint is what all others must have."""
    (folder / "mlp.toml").write_text(MODEL)
    right([args.build / "paceline", *TRAIN], cwd=folder)
    return checkpoint(folder / "out")


def bundle(args, folder, tree, expected):
    archive = folder / "b.tar.xz"
    print(right([SOURCE / "tools/bundle", args.build, "--out", archive]).strip())
    unpacked = folder / "unpacked"
    with tarfile.open(archive) as whole:
        whole.extractall(unpacked)
    (moved,) = unpacked.iterdir()
    root = lone_root(folder, moved)
    line, more = in_root(root, ["/opt/paceline/bin/paceline", *TRAIN])
    right(line, **more)
    check(checkpoint(root / "out") == expected, "alone in its root: another checkpoint than the plain build's")
    for words in (["report", "out", "--html", "out/page.html"], ["doctor"], ["verify", "out"],
                  ["launch", "-n", "4", "--", *[word if word != "out" else "launched" for word in TRAIN]]):
        line, more = in_root(root, ["/opt/paceline/bin/paceline", *words])
        right(line, **more)
    check((root / "out/page.html").stat().st_size > 10_000, "the report page is small")
    record = json.loads((root / "launched/record.json").read_text())
    check(record["communication"]["processes"] == 4, f"launch: {record['communication']}")
    print("alone in its root: train, report, doctor, verify, launch -n 4; the plain build's checkpoint")


def places(args, folder, tree, expected):
    """Moved, with spaces, behind links of both kinds, on a read-only mount, beside broken libraries."""
    home = folder / "a place" / "of my own"
    shutil.copytree(tree, home, symlinks=True)
    (folder / "link").symlink_to(home / "bin/paceline")
    (folder / "bin").mkdir()
    (folder / "bin/paceline").symlink_to("../link")
    broken = folder / "broken"
    broken.mkdir()
    for library in ("libc.so.6", "libstdc++.so.6", "libdnnl.so.2", "libfmt.so.9"):
        (broken / library).write_text("no library")
    work = folder / "work"
    for name, words, more in (
            ("moved, with spaces", [home / "bin/paceline"], {}),
            ("behind two links", [folder / "bin/paceline"], {}),
            ("found in PATH", ["paceline"], {"env": {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}}),
            ("beside broken libraries", [home / "bin/paceline"], {"env": {**os.environ, "LD_LIBRARY_PATH": str(broken)}}),
            ("on a read-only mount", ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$0/bin/paceline" "$@"',
                                      home], {})):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "mlp.toml").write_text(MODEL)
        right([*words, *TRAIN], cwd=work, **more)
        check(checkpoint(work / "out") == expected, f"{name}: another checkpoint")
        print(f"{name}: the plain build's checkpoint")


def files(args, folder, tree, expected):
    """Which files of the machine it opens."""
    if not shutil.which("strace"):
        print("not checked: which files are opened (Debian: strace)")
        return
    (folder / "mlp.toml").write_text(MODEL)
    shutil.rmtree(folder / "out", ignore_errors=True)
    right(["strace", "-f", "-e", "trace=open,openat,execve", "-o", folder / "trace", tree / "bin/paceline", *TRAIN], cwd=folder,
          env={**os.environ, "PACELINE_CACHE": str(folder / "cache")})
    opened = set()
    for line in (folder / "trace").read_text().splitlines():
        if '"/' in line and "= -1" not in line:
            opened.add(line.split('"')[1])
    strange = sorted(name for name in opened if not name.startswith((*READ, str(folder), str(tree))) and name not in ("/", "/proc", "/sys", "/dev"))
    check(not strange, f"files of the machine were opened: {strange}")
    print(f"of the machine only {sorted({next(part for part in READ if name.startswith(part)) for name in opened if name.startswith(READ)})} are read")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


def download(args, folder, tree, expected):
    """data get from an https server whose certificate SSL_CERT_FILE vouches for, and from the same without it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    right(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj",
           "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
    served = folder / "served"
    served.mkdir()
    for name, size in (("train-images-idx3-ubyte.gz", 26421880),):
        (served / name).write_bytes(bytes(size))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(served)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = lone_root(folder, tree)
    shutil.copy(certificate, root / "certificate.pem")
    words = ["/opt/paceline/bin/paceline", "data", "get", "fashion-mnist", "--from", f"https://127.0.0.1:{server.server_address[1]}", "--cache", "/c"]
    line, more = in_root(root, words, {"SSL_CERT_FILE": "/certificate.pem"})
    code, _, err = run(line, **more)
    # All bytes came; they are not the publisher's, which this test does not have.
    check(code == 3 and "its SHA-256 is" in err, f"https with the certificate: exit {code}: {err}")
    line, more = in_root(root, words)
    code, _, err = run(line, **more)
    check(code == 3 and "certificate" in err.lower() and "its SHA-256 is" not in err, f"https without: exit {code}: {err}")
    server.shutdown()
    print("data get by https: with the certificate all bytes come, without it the server is refused")


def wheel(args, folder, tree, expected):
    right([SOURCE / "tools/wheel", args.build, "--out", folder])
    (file,) = folder.glob("*.whl")
    code, out, err = run([sys.executable, "-m", "venv", folder / "venv"])
    if code != 0:
        print(f"not checked: the wheel; python3 -m venv: {(out + err).strip().splitlines()[-1]} (Debian: python3-venv)")
        return
    right([folder / "venv/bin/pip", "install", "--no-index", "--disable-pip-version-check", file])
    (folder / "mlp.toml").write_text(MODEL)
    shutil.rmtree(folder / "out", ignore_errors=True)
    right([folder / "venv/bin/paceline", *TRAIN], cwd=folder)
    check(checkpoint(folder / "out") == expected, "the wheel: another checkpoint")
    print(f"{file.name}, {file.stat().st_size / 1e6:.1f} MB: installed by pip; the plain build's checkpoint")


def image(args, folder, tree, expected):
    right([SOURCE / "tools/image", args.build, "--out", folder / "image.tar"])
    with tarfile.open(folder / "image.tar") as whole:
        whole.extractall(folder / "image")
    (manifest,) = json.loads((folder / "image/manifest.json").read_text())
    config = json.loads((folder / "image" / manifest["Config"]).read_text())
    root = folder / "rootfs"
    for layer in manifest["Layers"]:
        with tarfile.open(folder / "image" / layer) as part:
            part.extractall(root)
    (root / "mlp.toml").write_text(MODEL)
    line, more = in_root(root, [*config["config"]["Entrypoint"], *TRAIN])
    right(line, **more)
    check(checkpoint(root / "out") == expected, "the image: another checkpoint")
    print("the image's layers unpacked: its entry point trains; the plain build's checkpoint")


def installed(args, folder, tree, expected):
    right(["cmake", "--install", args.build, "--prefix", folder / "first"])
    (folder / "first").rename(folder / "second")
    (folder / "mlp.toml").write_text(MODEL)
    for words, out in ((TRAIN, "out"), (["launch", "-n", "2", "--", *TRAIN[:-1], "two"], "two")):
        shutil.rmtree(folder / out, ignore_errors=True)
        right([folder / "second/bin/paceline", *words], cwd=folder)
    check(checkpoint(folder / "out") == expected, "installed: another checkpoint")
    manual = (folder / "second/share/man/man1/paceline.1").read_text()
    check("paceline" in manual, "no manual page")
    print("cmake --install into a prefix that was then moved: the plain build's checkpoint")


def package(args, folder, tree, expected):
    """The Debian package, installed by apt into a Debian 12 that has nothing else."""
    root = folder / "root"
    if not shutil.which("debootstrap"):
        print("not checked: the Debian package in a bare root (Debian: debootstrap)")
        return
    code, out, err = run(["debootstrap", "--variant=minbase", "bookworm", root], timeout=900)
    if code != 0:
        print(f"not checked: the Debian package; debootstrap: {(out + err).strip().splitlines()[-1]}")
        return
    right(["cpack", "-G", "DEB", "-B", folder], cwd=args.build)
    (file,) = folder.glob("*.deb")
    shutil.copy(file, root)
    line, more = in_root(root, ["sh", "-c", f"apt-get -qq update && apt-get -qq install --no-install-recommends -y ./{file.name}"])
    right(line, timeout=900, **more)
    (root / "mlp.toml").write_text(MODEL)
    for words, out in ((TRAIN, "out"), (["launch", "-n", "2", "--", *TRAIN[:-1], "two"], "two")):
        line, more = in_root(root, ["/usr/bin/paceline", *words])
        right(line, **more)
    check(checkpoint(root / "out") == expected, "the package: another checkpoint")
    print(f"{file.name}, {file.stat().st_size / 1e6:.1f} MB: installed by apt into a bare root; train, launch -n 2; the plain build's checkpoint")


def with_tests(args, folder, tree, expected):
    """The form for a machine with a GPU, whose checks run on the processor here."""
    missing = [name for name in ("paceline_cuda.so", "tests/test_engine", "bench/cuda_probe") if not (args.build / name).exists()]
    if missing:
        print(f"not checked: the bundle with tests; {', '.join(missing)} was not built (./x gpu-bundle builds it)")
        return
    archive, mnist = folder / "gpu.tar.xz", folder / "mnist"
    mnist.mkdir()
    for name in ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte"):
        (mnist / name).write_bytes(b"made up")
    print(right([SOURCE / "tools/bundle", args.build, "--with-tests", "--mnist", mnist, "--out", archive]).strip())
    with tarfile.open(archive) as whole:
        whole.extractall(folder / "a place")
    home = folder / "a place" / "paceline-gpu"
    work = folder / "work"
    work.mkdir()
    check(sorted(path.name for path in (home / "share/paceline/checks/mnist").iterdir()) == sorted(path.name for path in mnist.iterdir()),
          "MNIST's files did not go along")
    out = right([home / "gpu-first", "--device", "cuda-on-host", "--quick", "--only", "start", "workers", "engine", "ops"], cwd=work)
    check("4 passed, 0 failed" in out and (work / "gpu-first-results.tar.gz").is_file(), f"gpu-first: {out}")
    out = right([home / "bin/test_engine", "--gtest_filter=CudaSections.*"], cwd=work)
    check("[  PASSED  ] " in out and "[  PASSED  ] 0 " not in out, f"test_engine: {out}")
    code, out, err = run([home / "gpu-check"], cwd=work)
    check(code == 2 and "gpu-first" in err, f"gpu-check names gpu-first: exit {code}: {out}{err}")
    (work / "mlp.toml").write_text(MODEL)
    right([home / "bin/paceline", *TRAIN], cwd=work)
    check(checkpoint(work / "out") == expected, "with tests: another checkpoint")
    print("with tests, in a path with spaces: gpu-first and test_engine start; the plain build's checkpoint")


CASES = {case.__name__: case for case in (bundle, places, files, download, wheel, image, installed, package, with_tests)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    args = parser.parse_args()
    args.build = args.build.resolve()
    if run(["unshare", "--mount", "true"])[0] != 0:
        print("skipped: roots and mounts of one's own are not allowed here (needs root)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="paceline-bundle-") as name:
        folder = Path(name)
        tree = folder / "tree"
        sys.path.insert(0, str(SOURCE / "tools"))
        from bundle_tree import make_tree
        make_tree(args.build, tree)
        (folder / "plain").mkdir()
        expected = plain_run(args, folder / "plain")
        for case in args.cases or CASES:
            (folder / case).mkdir()
            CASES[case](args, folder / case, tree, expected)


if __name__ == "__main__":
    main()
