"""The folder that tools/bundle, tools/wheel and tools/image pack: the program with every library it needs.

    bin/paceline             what people start (bundle_start.cc): finds itself through links and wherever it was moved to
    libexec/paceline         the program; with tests the test programs too, each with a starter in bin/
    lib/                     its libraries and their loader; lib/paceline: its modules, opened when they are asked for
    share/paceline/          recipes and models; share/doc/paceline: libraries, versions, licences; manual, completions, module file
    share/paceline/checks    with tests: the scripts of gpu-first and what they read; the command lies at the top

MPI's and CUDA's own libraries are not in it: they are the machine's, and opened when they are asked for.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
MODULES = ["paceline_archive.so", "paceline_curl.so", "paceline_http.so", "paceline_mpi.so", "paceline_mpich.so", "paceline_gloo.so", "paceline_cuda.so"]
# What a machine with a GPU needs to check the CUDA engine. test_train and the others speak for the processor's path, which other
# machines check.
TESTS = ["tests/test_engine", "tests/parity_run", "bench/cuda_probe", "bench/bench_train_step"]
CHECKS = ["tools/gpu_first", "tools/gpu_processes.py", "tools/gpu_results.py", "tools/gpu_speed.py", "tests/parity",
          "bench/torch_peer.py"]  # they find each other by these places
# Open MPI's libraries belong to the mpirun that starts the processes.
OF_THE_MACHINE = re.compile(r"^lib(mpi|open-rte|open-pal|mpich|pmix|cuda|cudart|cudnn|nccl|nvidia)[-_.\w]*\.so")
# glibc works only as a whole and with its own loader. The last ones are empty, but libraries of the machine ask for them by name.
GLIBC = ["ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libmvec.so.1", "libresolv.so.2", "libnss_files.so.2", "libnss_dns.so.2",
         "libnss_compat.so.2", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libanl.so.1"]
LOADER = GLIBC[0]

MODULE_FILE = """#%Module1.0
## For `module load`: put this file, or a link to it, where the site's module files are.
set self [file normalize $ModulesCurrentModulefile]
while {![catch {file readlink $self} link]} { set self [file join [file dirname $self] $link] }
set root [file dirname [file dirname [file dirname [file dirname $self]]]]
module-whatis "paceline: trains image classifiers with data parallelism and explains how the training scales"
conflict paceline
prepend-path PATH $root/bin
prepend-path MANPATH $root/share/man
"""


def fail(text):
    sys.exit(f"bundle: {text}")


def output_of(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def libraries_of(path):
    """Names and files of the libraries that the loader gives `path`."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", path), re.M))


def install(source, target, strip=False):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)
    target.chmod(0o755 if target.suffix in ("", ".so") or ".so." in target.name else 0o644)
    if strip:  # the build id stays, by which kernel caches know the program
        subprocess.run(["strip", "--strip-unneeded", target], check=True)


def packages_of(paths):
    """Debian's package of each file, its version and its copyright file; nothing of those that belong to none."""
    # A library may be registered by its link, by the file behind it, and with or without /usr.
    names = {path: [str(path), str(path.resolve()), f"/usr{path}", f"/usr{path.resolve()}", str(path.resolve()).removeprefix("/usr")]
             for path in paths}
    if not shutil.which("dpkg-query"):
        return {}
    said = subprocess.run(["dpkg-query", "-S", *{name for all_of in names.values() for name in all_of}], capture_output=True, text=True).stdout
    owners = {line.split(": ")[1]: line.split(": ")[0] for line in said.splitlines() if ": " in line}
    versions = dict(line.split() for line in output_of("dpkg-query", "-W", "-f=${Package} ${Version}\n").splitlines() if len(line.split()) == 2)
    found = {}
    for path, all_of in names.items():
        package = next((owners[name].split(":")[0] for name in all_of if name in owners), None)
        if package:
            found[path] = package, versions.get(package, ""), Path("/usr/share/doc") / package / "copyright"
    return found


def add_programs(build, root, with_tests):
    """Programs and modules that were built, without their libraries. Returns their files."""
    program = build / "paceline"
    if not program.exists():
        fail(f"there is no {program}; build it first: ./x build")
    wanted = [(name, f"libexec/{Path(name).name}") for name in ["paceline", *(TESTS if with_tests else [])]]
    wanted += [(name, f"lib/paceline/{name}") for name in MODULES]
    files = []
    for name, place in wanted:
        if (build / name).exists():
            install(build / name, root / place, strip=True)
            files.append(build / name)
        elif with_tests and name == "paceline_cuda.so":
            fail(f"there is no {build / name}: it is built where CUDA's toolkit is, and without it there is nothing to check on a GPU")
        else:
            print(f"bundle: without {name}, which was not built")
    return files


def add_starters(root):
    """One file for all: it starts what has its own name."""
    starter = root / "bin/paceline"
    starter.parent.mkdir()
    subprocess.run(["c++", "-std=c++20", "-O2", "-static", "-s", SOURCE / "tools/bundle_start.cc", "-o", starter], check=True)
    for program in sorted((root / "libexec").iterdir()):
        if program.name != starter.name:
            os.link(starter, root / "bin" / program.name)


def add_checks(root, mnist):
    """gpu-first at the top. `mnist`: a folder of its files, or an archive that holds them; None: without."""
    checks = root / "share/paceline/checks"
    for name in CHECKS:
        (checks / name).parent.mkdir(parents=True, exist_ok=True)
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, checks / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(SOURCE / name, checks / name)
    if mnist is None:
        print("bundle: without MNIST; gpu-first will skip that step")
    else:
        add_mnist(mnist, checks / "mnist")
    with_mnist = "" if mnist is None else ' --mnist "$here/share/paceline/checks/mnist"'
    first = f'exec python3 "$here/share/paceline/checks/tools/gpu_first" --programs "$here/bin"{with_mnist} "$@"'
    add_script(root / "gpu-first", f'here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)\n{first}')
    for name in ("gpu-probe", "gpu-check", "gpu-bench"):  # what it was called before
        add_script(root / name, f'echo "{name} is a part of gpu-first: start $(dirname "$0")/gpu-first" >&2\nexit 2')


def add_script(path, lines):
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)


def add_mnist(source, target):
    target.mkdir()
    if source.is_dir():
        for path in source.glob("*ubyte*"):
            shutil.copy(path, target)
    else:
        with tarfile.open(source) as archive:
            for entry in archive:
                if entry.isfile() and "ubyte" in entry.name:
                    (target / Path(entry.name).name).write_bytes(archive.extractfile(entry).read())
    if not any(target.iterdir()):
        fail(f"there are no files of MNIST (*ubyte*) in {source}")


def add_libraries(files, root):
    """All libraries of `files`, and glibc. Returns name and file of each."""
    found = {}
    for file in files:
        found |= {name: Path(path) for name, path in libraries_of(file).items() if not OF_THE_MACHINE.match(name)}
    # What only the machine's libraries want (Open MPI's hwloc, say) came with them in ldd's list.
    wanted, open_names = set(), [name for file in files for name in needed(file)]
    while open_names:
        name = open_names.pop()
        if name in found and name not in wanted:
            wanted.add(name)
            open_names += needed(found[name])
    libc = next(path for name, path in found.items() if name == "libc.so.6").parent
    for name in GLIBC:
        path = libc / name if (libc / name).exists() else Path("/lib64") / name
        if path.exists():
            wanted.add(name)
            found[name] = path
    for name in sorted(wanted):
        install(found[name], root / "lib" / name, strip=name not in GLIBC)
    return {name: found[name] for name in sorted(wanted)}


def needed(file):
    return re.findall(r"NEEDED\s+(\S+)", output_of("objdump", "-p", file))


def add_documents(libraries, root, version):
    documents = root / "share/doc/paceline"
    (documents / "licences").mkdir(parents=True)
    lines = [f"paceline {version}, and the libraries that this bundle holds; their licences are in licences/.", ""]
    packages = packages_of(libraries.values())
    for name, path in libraries.items():
        if path not in packages:
            lines.append(f"{name}  {path}  (of no package)")
            continue
        package, version_of_package, copyright_file = packages[path]
        lines.append(f"{name}  {package} {version_of_package}")
        if copyright_file.exists():
            shutil.copy(copyright_file.resolve(), documents / "licences" / f"{package}.txt")
    (documents / "libraries.txt").write_text("\n".join(lines) + "\n")
    shutil.copy(SOURCE / "README.md", documents)
    shutil.copytree(SOURCE / "recipes", root / "share/paceline/recipes", ignore=shutil.ignore_patterns("__pycache__", "models"))
    shutil.copytree(SOURCE / "recipes/models", root / "share/paceline/models")
    for name in ("paceline_model.py", "paceline_ddp.py"):
        shutil.copy2(SOURCE / "share/paceline" / name, root / "share/paceline" / name)


def add_words(root):
    """What the program writes about itself."""
    program = root / "bin/paceline"
    for words, target in ((["man"], "share/man/man1/paceline.1"), (["completion", "bash"], "share/bash-completion/completions/paceline"),
                          (["completion", "zsh"], "share/zsh/site-functions/_paceline"),
                          (["completion", "fish"], "share/fish/vendor_completions.d/paceline.fish")):
        path = root / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output_of(program, *words))


def make_tree(build, root, with_tests=False, mnist=None):
    """The folder of the bundle, at `root`. `with_tests`: with what checks a GPU, MNIST's files among it. Returns the version."""
    version = output_of(build / "paceline", "--version").split()[1]
    libraries = add_libraries(add_programs(build, root, with_tests), root)
    add_starters(root)
    add_documents(libraries, root, version)
    add_words(root)
    modules = root / "share/modulefiles/paceline"
    modules.mkdir(parents=True)
    (modules / version).write_text(MODULE_FILE)
    if with_tests:
        add_checks(root, mnist)
    return version
