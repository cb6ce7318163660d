#!/usr/bin/env python3
"""Turns what scripts/gpu_check.sh has found into a JSON and into the page docs/gpu-results.md: for each claim what it was
measured on and when, or that it is unproven. Without results, every claim is unproven:

    scripts/gpu/results.py --markdown docs/gpu-results.md
"""

import argparse
import datetime
import json
import platform
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What is claimed of GPUs: words, and how the results tell. ("tests", PATTERN): those GPU tests whose name has PATTERN;
# ("ratio", WORKLOAD, BATCH, WANTED): times as fast as PyTorch's best; ("stage", NAME); ("bundle",): the build, with the bundle;
# ("doctor",): the GPUs that it found, and trained on one of.
CLAIMS = [
    ("Builds on a machine with a GPU from what the bundle brings", ("bundle",)),
    ("`ronda_doctor` finds the GPU and trains on it for a moment", ("doctor",)),
    ("Memory, streams, events and copies of a GPU", ("tests", "gpu_device")),
    ("Every layer on the GPU gives what it gives on the CPU, within its type's tolerance", ("tests", "gpu_layers")),
    ("The optimizers on the GPU give what they give on the CPU", ("tests", "gpu_update")),
    ("One GPU follows the CPU: MLP over 100 steps, CNN over 50", ("tests", "gpu_training")),
    ("Half types: an MLP and a CNN learn as in float32, an overflow is skipped on all ranks, a replay has the bits of steps without", ("tests", "gpu_mixed")),
    ("The step as one CUDA graph gives the bits of the steps without", ("tests", "gpu_graph")),
    ("Data that the GPU keeps, batches copied ahead and steps begun ahead train to the bits of steps one by one, and no step has the host wait", ("tests", "gpu_data")),
    ("NCCL connects two ranks, reduces, copies, and its memory is registered", ("tests", "gpu_nccl.2_ranks")),
    ("Two and four ranks on one GPU train as one does, by NCCL in the recorded step and through the host", ("tests", "gpu_ranks")),
    ("A training on a GPU that was ended and saved goes on to the same bits; checkpoints go from CPU to GPU and back; audits find a flipped bit; micro-batches follow whole ones", ("tests", "gpu_resume")),
    ("All GPU tests", ("tests", "")),
    ("Goal, MLP, batch 64: 10 times PyTorch's best", ("ratio", "mlp", 64, 10)),
    ("Goal, CNN, batch 64: 5 times PyTorch's best", ("ratio", "cnn", 64, 5)),
    ("Goal, MLP, batch 4096: as fast as PyTorch's best", ("ratio", "mlp", 4096, 1)),
    ("Goal, CNN, batch 4096: as fast as PyTorch's best", ("ratio", "cnn", 4096, 1)),
    ("NCCL's allreduce between several GPUs: its speed", ("stage", "nccl")),
    ("Errors of NCCL while kernels run end the job by name", None),
    ("A replay that stands still ends the job by name", None),
    ("Several GPUs on a host, and several hosts, train as one", None),
    ("compute-sanitizer finds nothing in memory, updates, and a recorded training", ("stage", "sanitizer")),
]


def read_tests(*paths):
    """Names by outcome."""
    found = {"passed": [], "failed": [], "skipped": [], "not built": []}
    for path in paths:
        try:
            cases = list(xml.parse(path).getroot().iter("testcase"))
        except (OSError, xml.ParseError):  # it did not come so far
            continue
        for case in cases:
            reason = case.find("skipped")
            absent = reason is not None and "SKIP" not in reason.get("message", "")
            outcome = {"run": "passed", "fail": "failed"}.get(case.get("status"), "not built" if absent else "skipped")
            found[outcome].append(case.get("name"))
    return found


def read_lines(path):
    return path.read_text().split() if path.exists() else []


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def collect(folder):
    """All that the stages have left, whatever of it there is."""
    stages = []
    if (folder / "stages.tsv").exists():
        for line in (folder / "stages.tsv").read_text().splitlines():
            name, outcome, seconds = line.split("\t")
            log = folder / "logs" / f"{name}.log"
            last = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
            stages.append({"name": name, "outcome": outcome, "seconds": int(seconds),
                           "note": last[0] if last and outcome != "passed" else ""})
    lines = []
    if (folder / "measurements.jsonl").exists():
        lines = [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]
    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    results = {
        "date": datetime.date.today().isoformat(),
        "revision": output_of("git", "describe", "--always", "--dirty") or "version " + (ROOT / "VERSION").read_text().strip(),
        "machine": platform.machine(),
        "gpus": gpu,
        "nvcc": next((word for word in output_of("nvcc", "--version").split() if word.startswith("V")), ""),
        "stages": stages,
        "gpu_tests": read_lines(folder / "gpu-tests.txt"),  # of this build, whether they ran or not
        "bundle": (folder / "bundle").exists(),
        "tests": {name: read_tests(*sorted((folder / "tests").glob(f"{name}*.xml"))) for name in ("gpu", "cpu")},
        "measurements": lines,
    }
    for name in ("doctor", "nccl"):
        if (folder / f"{name}.json").exists():
            results[name] = json.loads((folder / f"{name}.json").read_text())
    return results


def best(results, program, workload, batch, dtype):
    """The fastest of a program's runs on the GPU; of PyTorch's, of any way of running."""
    lines = [line for line in results["measurements"]
             if "error" not in line and line["device"] == "cuda"
             and (line["program"], line["workload"], line["batch"], line["dtype"]) == (program, workload, batch, dtype)]
    return max(lines, key=lambda line: line["samples_per_second"], default=None)


def variants(results, workload, batch, dtype="float32"):
    """PyTorch's ways of running that were measured."""
    return [line["variant"] for line in results["measurements"] if "error" not in line and line["device"] == "cuda"
            and (line["program"], line["workload"], line["batch"], line["dtype"]) == ("PyTorch", workload, batch, dtype)]


def evidence(results, how):
    """What the results say of a claim; nothing where they say nothing."""
    if not results["gpus"] or how is None:
        return None
    kind, *rest = how
    if kind == "doctor":
        doctor = results.get("doctor", {})
        found = ", ".join(gpu["name"] for gpu in doctor.get("gpus", []))
        return (found + (": trains" if doctor.get("can_train_on_gpu") else ": does not train")) if found else None
    if kind == "bundle":
        return evidence(results, ("stage", "build")) if results["bundle"] else None
    if kind == "stage":
        stage = next((stage for stage in results["stages"] if stage["name"] == rest[0]), None)
        return None if stage is None or stage["outcome"] == "skipped" else stage["outcome"]
    if kind == "tests":
        counts = {outcome: sum(rest[0] in name for name in names) for outcome, names in results["tests"]["gpu"].items()}
        if results["gpu_tests"] and not any(rest[0] in name for name in results["gpu_tests"]):
            return "no test yet"
        if counts["passed"] + counts["failed"] == 0:
            return None
        return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    workload, batch, wanted = rest
    mine, theirs = (best(results, program, workload, batch, "float32") for program in ("Ronda", "PyTorch"))
    if mine is None or theirs is None:
        return None
    ratio = mine["samples_per_second"] / theirs["samples_per_second"]
    ways = variants(results, workload, batch)
    verdict = "reached" if ratio >= wanted else "not reached"
    if not any("compiled" in way for way in ways):
        verdict = "incomplete, PyTorch was not measured compiled"
    return f"{ratio:.2f} times ({theirs['variant']}, best of {', '.join(ways)}): {verdict}"


def table_of_speed(results):
    rows = []
    works = {(line["workload"], line["batch"], line["dtype"]) for line in results["measurements"] if line.get("device") == "cuda"}
    for work in sorted(works):
        mine, theirs = (best(results, program, *work) for program in ("Ronda", "PyTorch"))
        speed = ["not measured" if line is None else f"{line['samples_per_second']:,.0f}" for line in (mine, theirs)]
        way = "" if theirs is None else f" ({theirs['variant']})"
        ratio = f"{mine['samples_per_second'] / theirs['samples_per_second']:.2f}" if mine and theirs else ""
        rows.append(f"| {work[0]} | {work[1]} | {work[2]} | {speed[0]} | {speed[1]}{way} | {ratio} |")
    return rows


def markdown(results):
    where = f"{results['gpus'][0]}, CUDA {results['nvcc']}, {results['date']}, {results['revision']}" if results["gpus"] else ""
    page = ["# What is proven on a GPU, and what is not", "",
            "Written by `scripts/gpu_check.sh --docs`, which builds, tests and measures on a machine with a GPU in less than nine",
            "minutes; it brings its own MPI and libraries (`scripts/gpu_bundle.sh`), and needs CUDA, CMake and PyTorch there.", ""]
    if results["gpus"]:
        page += [f"Measured on {len(results['gpus'])} × {where}. Both sides' best of the same run; samples a second.", ""]
    else:
        page += ["**No GPU was at hand: every line below is unproven.** What is checked without one: everything",
                 "compiles without warnings, the CPU's tests pass on that binary without a driver, NCCL's communicator is",
                 "tested against a stand-in that records its calls, and whole trainings of several ranks, by that and through the",
                 "host, on devices that are threads.", ""]
    page += ["| claim | proven |", "|---|---|"]
    for words, how in CLAIMS:
        found = evidence(results, how)
        page.append(f"| {words} | {'unproven' if found is None else found} |")
    rows = table_of_speed(results)
    if rows:
        page += ["", "| workload | batch | type | Ronda | PyTorch's best | ratio |", "|---|---|---|---|---|---|", *rows]
    for entry in results.get("nccl", {}).get("results", [])[-1:]:
        page += ["", f"NCCL's allreduce of {entry['bytes']:,} bytes between {results['nccl']['ranks']} GPUs: {entry['busbw_GBps']:.1f} GB/s (busbw)."]
    return "\n".join(page) + "\n"


def trial(results):
    """For a run without a GPU: what it did all the same."""
    lines = ["", "## This run, without a GPU (no result of any claim)"]
    lines += [f"- {stage['name']}: {stage['outcome']}, {stage['seconds']} s" + (f" ({stage['note']})" if stage["note"] else "")
              for stage in results["stages"]]
    for name, found in results["tests"].items():
        lines.append(f"- {name} tests: " + ", ".join(f"{len(names)} {outcome}" for outcome, names in found.items()))
    for line in results["measurements"]:
        what = f"{line['program']} {line['variant']}".strip()
        speed = line.get("error") or f"{line['samples_per_second']:,.0f} samples/s on the CPU"
        lines.append(f"- {what}, {line['workload']}, batch {line['batch']}, {line['dtype']}: {speed}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ran", type=Path, metavar="XML", help="status of these tests: 1 where one failed, 77 where none ran")
    parser.add_argument("--from", dest="folder", type=Path, help="of a run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    if options.ran:
        found = read_tests(options.ran)
        print(", ".join(f"{len(names)} {outcome}" for outcome, names in found.items()))
        return 1 if found["failed"] else 0 if found["passed"] else 77
    results = collect(options.folder or Path("nowhere"))
    if not options.folder:
        results["gpus"] = []
    page = markdown(results)
    if options.folder and not results["gpus"]:
        page += trial(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
