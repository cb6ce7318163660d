#!/usr/bin/env python3
"""Every command and program of README.md, docs/ and examples/ runs as it stands, from where it stands.

    documents.py APPS BUILD CXX

A fenced block of sh or bash is run; one of cmake, cpp, c or python is built, or run, against an installed tree; one that
quotes an example has to be in it. Tests that docs/trust.md names have to be there, and files that a page links to. What is not run, or
not to its end, stands below with the reason, by its exact text: a command that is changed, or new, is run, or noticed here. A document's commands run one
after another, a few documents at a time, each from a copy of the repository's root, of links, so that nothing is written into that.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"`((?:mpirun|srun|sbatch|cmake|ctest|cc|python3|build/|scripts/|test/|RONDA_\w+=)[^`]*)`")

# Lines of blocks, and commands in the text, that are not run.
NEEDS_PACKAGES = "installs packages and builds everything, as whoever runs this test has done"
NEEDS_HOSTS = "needs the hosts that it names; system.several_hosts trains between hosts"
NEEDS_SLURM = "needs a Slurm of several nodes; system.slurm runs the scripts"
NEEDS_GPU = "needs a GPU"
NO_COMMAND = "names a tool or an option, not a command to be typed"
FOR_HOURS = "measures, or tries at random, for minutes or hours"
BUILDS = "builds in the tree that this test is run from, or runs its tests"
NOT_RUN = {
    "scripts/quickstart.sh    # installs missing packages, builds, trains a CNN on MNIST with two ranks to 99 %": NEEDS_PACKAGES,
    "scripts/test.sh          # the same set-up, then all tests": NEEDS_PACKAGES,
    "cmake --preset release && cmake --build --preset release && ctest --preset release": NEEDS_PACKAGES,
    "cmake --preset release && cmake --build --preset release": NEEDS_PACKAGES,
    "mpirun --hostfile hosts -n 16 build/release/apps/mnist_cnn": NEEDS_HOSTS,
    "mpirun --hostfile hosts -n 32 build/release/apps/mnist_cnn": NEEDS_HOSTS,
    "build/release/apps/ronda_run --hosts a:8,b:8,c:8 build/release/apps/mnist_cnn --checkpoint-dir run/checkpoints "
    "--checkpoint-every 1m": NEEDS_HOSTS,
    "test/beds/netns.sh --rate 1gbit --delay 100us 4 2 mpirun build/release/apps/mnist_mlp --verbose":
        "needs root and network namespaces; system.several_hosts runs the bed",
    "test/beds/netns.sh --rate 1gbit 4 1 mpirun --mca btl_tcp_flags send,inplace build/release/apps/mnist_mlp --hidden 4096,4096,4096 "
    "--global-batch-size 8 --learning-rate 0.001 --steps 15 --strategy parameter_server --servers 2":
        "needs root and network namespaces; system.several_hosts runs the bed",
    "sbatch scripts/slurm/srun.sbatch": NEEDS_SLURM,
    "srun --mpi=pmix -N 4 --ntasks-per-node=4 build/release/apps/mnist_cnn": NEEDS_SLURM,
    "sbatch scripts/slurm/mpirun.sbatch build/release/apps/mnist_cnn --epochs 5": NEEDS_SLURM,
    "sbatch scripts/slurm/srun.sbatch build/release/apps/mnist_cnn --epochs 5": NEEDS_SLURM,
    "sbatch scripts/slurm/srun.sbatch build/release/apps/mnist_cnn --checkpoint-dir run/checkpoints --checkpoint-every 10m "
    "--resume": NEEDS_SLURM,
    "sbatch --array=1-8 scripts/slurm/srun.sbatch build/release/apps/mnist_cnn --seed %a --checkpoint-dir run/%a --resume "
    "--summary-json run/%a.json": NEEDS_SLURM,
    'srun … --seed "$SLURM_ARRAY_TASK_ID"': NO_COMMAND,
    "srun --mpi=pmix": NO_COMMAND,
    "srun --mpi=list": NO_COMMAND,
    "srun …": NO_COMMAND,
    "mpirun -n 1": NO_COMMAND,
    "mpirun -n 2": NO_COMMAND,
    "mpirun -n 1 app : -n 1 true": "the stall.not-started tests run it",
    "cmake --preset release": NO_COMMAND,
    "cmake --preset debug && cmake --build --preset debug": BUILDS,
    "cmake --build build/release --target test_collectives": BUILDS,
    "ctest --test-dir build/release -R '^cost_model$' --output-on-failure    # one test; -N lists all": BUILDS,
    "cmake --preset asan && cmake --build --preset asan && ctest --preset asan": BUILDS,
    "scripts/tidy.sh FILE…": BUILDS,
    "scripts/api_reference.sh": "needs Doxygen; .ci/run runs it",
    "mpirun -n 2 build/release/apps/bench_coordinator": FOR_HOURS,
    "mpirun -n 4 program": "the program of the page, which is run",
    "mpirun -n 4 python3 program.py": "the program of the page, which is run",
    "test/system/kills.sh build/release/apps build/release/test/checkpoint/counted_training 100": FOR_HOURS,
    "mpirun -n 2 build/release/apps/mnist_cnn --config examples/cnn.toml": "takes minutes; system.accuracy trains the network",
    "mpirun -n 2 build/release/apps/mnist_cnn --config examples/pruned_cnn.toml": "takes minutes; system.accuracy trains the network",
    "scripts/fetch_cifar.sh 10 data": "fetches 170 MB from a site that is not ours",
    "mpirun -n 2 build/release/apps/char_gpt --config examples/char_gpt.toml --data text.txt":
        "takes minutes; system.char_gpt trains a smaller one",
    "mpirun -n 2 build/release/apps/cifar10_cnn --config examples/cifar10.toml --data data":
        "needs CIFAR-10; system.cifar10 trains the network",
    "scripts/scaling.sh mnist_cnn": "takes minutes; system.scaling runs it",
    "test/beds/small_memory.sh --turns 2 build/release": FOR_HOURS,
}
# Trainings of mnist_cnn to the end, which the program of README.md is already: for a few steps.
FEW_STEPS = {
    "build/release/apps/mnist_cnn",
    "mpirun -n 4 build/release/apps/mnist_cnn --global-batch-size 128",
    "mpirun -n 2 build/release/apps/mnist_cnn --checkpoint-dir run/checkpoints --checkpoint-every 10m --resume",
}
# Documents whose commands are those of a measurement, or of a GPU.
NOT_RUN_DOCUMENTS = {"docs/gpu.md": NEEDS_GPU, "docs/gpu-results.md": NEEDS_GPU, "docs/performance.md": FOR_HOURS}

# Lines that end with another status than 0, which is what they are there to show.
FAILS = {
    "run --inject kill@500:1                                # a rank dies",
    "run --inject stop@700:0                                # the host is wanted back: status 75",
}

# Pieces of programs, by document and first line: what stands before, what stands for what is left out, what stands after.
BARE = """#include <ronda/ronda.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
using namespace ronda;
"""
PIECES = {
    ("docs/coordinator.md", "#include <ronda/ronda.h>"):
        ("", ("ronda_group* world;", "int main(void) { float data[10] = {0}; const uint64_t count = 10; ronda_group* world;"),
         "return 0; }\n"),
    ("docs/first_program.md", "Console console;"):
        (BARE + "void f(World& world, Layer& model, Loss& loss) {\n", ("{…}", "{}"), "}\n"),
    ("docs/hooks.md", "Trainer trainer(world, model, loss, {.epochs = 5});"):
        (BARE + "void f(World& world, Layer& model, Loss& loss, const Dataset& train, const Dataset& test) {\n", ("", ""), "}\n"),
    ("docs/hooks.md", "class LossSpikes final : public Hook {"): (BARE, ("", ""), ""),
    ("docs/parameters.md", "Trainer trainer(world, model, loss,"):
        (BARE + "void f(World& world, Layer& model, Loss& loss) {\n", ("", ""), "}\n"),
    ("docs/parameters.md", "void evaluate(const Layer& model, const Dataset& data) {"): (BARE, ("", ""), ""),
    ("docs/metrics.md", "Trainer trainer(world, model, loss, {.epochs = 5});"):
        (BARE + "#include <iostream>\nvoid f(World& world, Layer& model, Loss& loss, const Dataset& train, const Dataset& test) {\n",
         ("", ""), "}\n"),
    ("docs/options.md", "Trainer trainer(world, model, loss, {.epochs = 5, .batch_size = 64});"):
        (BARE + "void f(World& world, Layer& model, Loss& loss) {\n", ("", ""), "}\n"),
    ("docs/no-silent-hang.md", "{"):
        (BARE + "void write_everything();\nvoid f(Communicator communicator) {\n", ("", ""), "}\n"),
    ("docs/no-silent-hang.md", "WorldOptions options;"): (BARE + "void f() {\n", ("", ""), "}\n"),
}
PIECES |= {
    ("docs/layers.md", "const Sequential model(Conv1d(64, 7, {.stride = 2, .padding = 3}), BatchNorm(), ReLU(), MaxPool1d(2),"): (BARE, ("", ""), ""),
    ("docs/custom_loop.md", "const Sequential model(Dense(32), [](Value x, GraphBuilder& b) {"):
        (BARE + "constexpr int classes = 3;\n", ("", ""), ""),
}
PIECES |= {
    ("docs/onnx.md", "void export_model(const Layer& model, Strategy& strategy, const Dataset& data) {"): (BARE, ("", ""), ""),
    ("docs/onnx.md", "class Swish : public CustomOperation, public OnnxTranslation {"): (BARE, ("", ""), ""),
}
# Documents that quote an example.
QUOTES = {"docs/first_program.md": "examples/first_program", "docs/custom_loop.md": "examples/custom_loop"}

failures = []
left_out = dict.fromkeys([*NOT_RUN, *FEW_STEPS], 0)


ENDED = "documents.py: this command failed: "  # in the output, behind that of the command


def last_lines(output):
    """The 20 lines before the end of each command that failed; if none did, before the end of all."""
    lines = output.splitlines()
    ends = [i for i, line in enumerate(lines) if line.startswith(ENDED)] or [len(lines) - 1]
    return [lines[i] for i in sorted({i for end in ends for i in range(max(0, end - 20), end + 1)})]


def fail(where, what, output=""):
    failures.append(where)
    print(f"FAILED: {where}: {what}")
    print("".join(f"    | {line}\n" for line in last_lines(output)), end="", flush=True)


class Place:
    """A temporary home, with Ronda installed in ~/ronda; each document has the repository's root by links."""

    def __init__(self, apps, build):
        self.apps, self.build = apps, build
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="ronda-documents."))
        self.prefix = self.home / "ronda"
        self.environment = dict(os.environ, HOME=str(self.home), TMPDIR=str(self.home))

    def root(self, document):
        """The repository's root as the document has it."""
        root = self.home / "repositories" / re.sub(r"\W", "_", document)
        if root.exists():
            return root
        own = root / "build" / "release"
        (own / "apps").mkdir(parents=True)
        for entry in REPOSITORY.iterdir():
            if entry.name not in ("build", "run"):
                (root / entry.name).symlink_to(entry)
        for program in self.apps.iterdir():
            if program.is_file() and os.access(program, os.X_OK):
                (own / "apps" / program.name).symlink_to(program)
        for entry in self.build.iterdir():
            if entry.name != "apps":
                (own / entry.name).symlink_to(entry)
        return root

    def run(self, where, script, folder, fails=(), limit=180):
        """A bash script, each of whose commands succeeds but for those in `fails`, within `limit` seconds; returns what it says."""
        trap = ("trap '[[ $BASH_COMMAND == wait ]] || { printf \"" + ENDED + "%s\\n\" \"$BASH_COMMAND\"; "
                "printf \"%s\\n\" \"$BASH_COMMAND\" >>\"$FAILED\"; }' ERR\n")
        handle, name = tempfile.mkstemp(prefix="failed.", dir=self.home)
        os.close(handle)
        failed = pathlib.Path(name)
        begin, since = f"set -uo pipefail\n{trap}", time.monotonic()
        with subprocess.Popen(["bash", "-c", begin + script + "\nwait\n:"], cwd=folder, text=True, start_new_session=True,
                              env=dict(self.environment, FAILED=str(failed)), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
            try:
                output, _ = shell.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)
                fail(where, f"not over in {limit} s", shell.communicate()[0])
                return ""
        wrong = failed.read_text().splitlines()  # of a function's call what it was at
        if len(wrong) != len(fails) or shell.returncode != 0:
            fail(where, f"status {shell.returncode}; {len(fails)} commands were to fail, these did: {wrong}", output)
        print(f"{time.monotonic() - since:5.1f} s  {where}", flush=True)
        return output


def commands(script):
    """What of a block is run, and what of that is to fail."""
    kept = []
    for line in script.splitlines():
        if line in NOT_RUN:
            left_out[line] += 1
        elif line in FEW_STEPS:
            left_out[line] += 1
            kept.append(line + " --steps 50")
        else:
            kept.append(line)
    return "\n".join(kept), [line for line in kept if line in FAILS]


def run_shell(place, document, where, text):
    script, fails = commands(text)
    if not script.strip():
        return
    root = place.root(document)
    folder = root / pathlib.Path(document).parent if document.startswith("examples/") else root
    if "-S . -B build" in script:  # in a program's own folder
        folder = place.home / "program" if document == "README.md" else root / "first_program"
        if not folder.exists():
            shutil.copytree(place.prefix / "share/ronda/examples/first_program", folder)
    if "program.c" in script:
        folder = place.home / "pieces"
    output = place.run(where, script, folder, fails)
    if "build/program" in script and not re.search(r"^test accuracy 0\.9[89]", output, re.M):
        fail(where, "expected an accuracy of 98 % or more", output)
    if "build/first_program " in script and len(re.findall(r"^test accuracy 9[789]", output, re.M)) != 2:
        fail(where, "expected an accuracy of 97 % or more, twice", output)
    if "--inject" in script:
        hashes = re.findall(r'"parameter_hash": "(\w+)"', output)
        if len(hashes) != 2 or hashes[0] != hashes[1]:
            fail(where, f"expected the same hash twice, not {hashes}", output)
    if "kill -STOP" in script and not re.search(r"stood still.*its process is stopped", output):
        fail(where, "expected the stopped rank to be named", output)


def run_page(place, document, blocks):
    """The commands of a document, in their order."""
    for where, _, text in blocks:
        run_shell(place, document, where, text)


def bare(line):
    """A line of a program without its comment, blanks and the namespace."""
    return re.sub(r"\s+|ronda::", "", re.sub(r"//.*", "", line))


def quoted(text, example):
    """The first line of a quotation that its example has not; … stands for anything."""
    source = "".join(bare(line) for file in sorted((REPOSITORY / example).iterdir()) if file.is_file()
                     for line in file.read_text().splitlines())
    for line in filter(None, map(bare, text.splitlines())):
        if not re.search(".*?".join(map(re.escape, line.split("…"))), source):
            return line
    return None


def take_program(place, document, where, language, text):
    """Puts programs and pieces where they are built."""
    first = text.splitlines()[0]
    pieces = place.home / "pieces"
    pieces.mkdir(exist_ok=True)
    name = re.sub(r"\W", "_", f"{document}_{first}")[:40]
    if document == "README.md":
        folder = place.home / "program"
        folder.mkdir(exist_ok=True)
        (folder / ("main.cpp" if language == "cpp" else "CMakeLists.txt")).write_text(text)
    elif (document, first) in PIECES:
        before, (left, put), after = PIECES[document, first]
        (pieces / ("program.c" if language == "c" else f"{name}.cpp")).write_text(before + text.replace(left, put) + after)
    elif language == "python":
        (pieces / "program.py").write_text(text)
    elif language == "cpp" and "int main(" in text and "…" not in text:
        (pieces / f"{name}.program.cpp").write_text(text)
    elif document in QUOTES:
        missing = quoted(text, QUOTES[document])
        if missing is not None:
            fail(where, f"{QUOTES[document]} has no '{missing}'")
    else:
        fail(where, f"nobody knows what to do with this {language}; say it in PIECES or QUOTES")


def as_one_source(pieces):
    """Pieces of programs as one, each in a namespace of its own, so that what they include is compiled once."""
    lines = [(file, line) for file in pieces for line in file.read_text().splitlines()]
    source = sorted({line for _, line in lines if line.startswith("#include")})
    for file in pieces:
        source += [f"namespace {file.stem} {{", f'#line 1 "{file.name}"']
        source += ["" if line.startswith("#include") else line for of, line in lines if of == file] + ["}"]
    return "\n".join(source) + "\n"


def build_pieces(place):
    folder = place.home / "pieces"
    programs = sorted(folder.glob("*.program.cpp"))
    (folder / "pieces.cc").write_text(as_one_source(sorted(set(folder.glob("*.cpp")) - set(programs))))
    lines = ["cmake_minimum_required(VERSION 3.22)", "project(pieces LANGUAGES C CXX)", "find_package(ronda REQUIRED)",
             "find_package(MPI REQUIRED)", "add_library(pieces OBJECT pieces.cc)",
             "target_link_libraries(pieces PRIVATE ronda::ronda MPI::MPI_CXX)",
             "target_precompile_headers(pieces PRIVATE <ronda/ronda.hpp>)"]  # most of the time is for reading it
    for file in programs:
        lines += [f"add_executable({file.stem.split('.')[0]} {file.name})",
                  f"target_link_libraries({file.stem.split('.')[0]} ronda::ronda)"]
        if "#include <ronda/ronda.hpp>" in file.read_text():
            lines.append(f"target_precompile_headers({file.stem.split('.')[0]} REUSE_FROM pieces)")
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    place.run("pieces of programs", "cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH=~/ronda && cmake --build build", folder,
              limit=400)
    for file in programs:
        place.run(file.name, f"mpirun -n 4 build/{file.stem.split('.')[0]}", folder)
    script = f"PYTHONPATH='{REPOSITORY}/examples/python' RONDA_LIBRARY=~/ronda/lib/libronda.so mpirun -n 4 python3 program.py"
    if (folder / "program.py").exists() and has_numpy():
        place.run("docs/coordinator.md, Python", script, folder)


def has_numpy():
    return subprocess.run(["python3", "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def check_allreduces(apps):
    """Each allreduce that can be asked for has its line in docs/collectives.md."""
    text = subprocess.run([apps / "bench_allreduce", "--help"], check=True, capture_output=True, text=True).stdout
    listed = re.search(r"--algorithm.*?\s(auto, .*?)\(GPUs", text, re.S)[1]
    page = (REPOSITORY / "docs/collectives.md").read_text()
    for name in re.findall(r"\w+", listed):
        if name != "auto" and not re.search(rf"^\| `{name}` \|", page, re.M):
            fail("docs/collectives.md", f"the table has no line for the allreduce '{name}'")


def check_trust(build):
    """Each test that docs/trust.md names for a promise is one of ctest's entries, or the beginning of some."""
    # As CMake has written them: ctest itself, asked for a list, would begin the log of the tests that run anew.
    entries = [name for file in build.rglob("CTestTestfile.cmake")
               for name in re.findall(r"^add_test\((?:\[=*\[)?([^\s\]]+)", file.read_text(), re.M)]
    for row in re.findall(r"^\|.*\|$", (REPOSITORY / "docs/trust.md").read_text(), re.M):
        for name in re.findall(r"`([\w.-]+)`", row.split("|")[2]):
            if not any(f"{entry}.".startswith(f"{name}.") for entry in entries):
                fail("docs/trust.md", f"there is no test '{name}'")


def check_links():
    """Each file that a page links to is there, and docs/README.md links to each page."""
    for page in [*sorted(REPOSITORY.glob("docs/*.md")), *sorted(REPOSITORY.glob("*.md"))]:
        text = re.sub(r"`[^`]*`", "", BLOCK.sub("", page.read_text()))
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            if not (page.parent / link).exists():
                fail(page.name, f"there is no '{link}'")
    index = (REPOSITORY / "docs/README.md").read_text()
    for page in sorted(REPOSITORY.glob("docs/*.md")):
        if page.name != "README.md" and f"({page.name})" not in index:
            fail("docs/README.md", f"the page {page.name} is not listed")


def main():
    apps, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    check_trust(build)
    check_allreduces(apps)
    check_links()
    place = Place(apps, build)
    place.environment["CXX"] = sys.argv[3]
    if not has_numpy():
        NOT_RUN["RONDA_LIBRARY=~/ronda/lib/libronda.so mpirun -n 2 python3 python/linear_regression.py"] = "there is no NumPy here"
        left_out.update(dict.fromkeys(NOT_RUN, 1))
    files = ["README.md", *sorted(str(file.relative_to(REPOSITORY)) for file in REPOSITORY.glob("docs/*.md")), "examples/README.md"]
    shells, programs = [], []
    for document in files:
        text = (REPOSITORY / document).read_text()
        for block in BLOCK.finditer(text):
            where = f"{document}, line {text.count(chr(10), 0, block.start()) + 1}"
            if document in NOT_RUN_DOCUMENTS:
                continue
            (shells if block[1] in ("sh", "bash") else programs).append((document, where, block[1], block[2]))
        for command in INLINE.findall(BLOCK.sub("", text)):
            if document not in NOT_RUN_DOCUMENTS and (" " in command or command.startswith("build/")):
                shells.append((document, f"{document}, `{command}`", "sh", command.replace("\n", " ")))
    for file in sorted(REPOSITORY.glob("examples/*.toml")):
        for command in re.findall(r"^#     (\S.*)$", file.read_text(), re.M):
            shells.append((".", file.name, "sh", command))
    place.run("cmake --install", "cmake --install build/release --prefix ~/ronda >~/installed", place.root("README.md"))
    for document, where, language, text in programs:
        take_program(place, document, where, language, text)
    pages = {}
    for document, *block in shells:
        pages.setdefault(document, []).append(block)
    with concurrent.futures.ThreadPoolExecutor(3) as readers:
        built = readers.submit(build_pieces, place)
        after_pieces = [readers.submit(run_page, place, document, blocks) for document, blocks in pages.items()]
        for page in (built, *after_pieces):
            page.result()
    for line, times in left_out.items():
        if times == 0:
            fail("documents.py", f"no document has '{line}' any more")
    shutil.rmtree(place.home)
    print(f"{len(shells)} commands and blocks, {len(programs)} programs and pieces; {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
