#!/usr/bin/env python3
"""Draws a training from what it wrote: learning curves of --metrics, the confusion matrix of --summary-json.

  plot_training.sh run/metrics.jsonl                       leaves run/metrics.svg
  plot_training.sh run/metrics.jsonl run/summary.json      and run/summary.svg, if tests measured a confusion matrix
  plot_training.sh run.jsonl run.json                      leaves run.svg and run.confusion.svg

A step's curve is the mean of neighbours, 400 points at most. plot_training.sh calls this.
"""

import argparse
import json
import sys
from pathlib import Path

import svg

MOST_POINTS = 400


def fail(words):
    print(f"plot_training.sh: {words}", file=sys.stderr)
    sys.exit(2)


def read(path, load):
    try:
        return load(path.read_text())
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}")
    except ValueError as error:
        fail(f"{path} is damaged, or is another kind of file: {error}")


def by_lines(words):
    return [json.loads(line) for line in words.splitlines() if line]


def smoothed(points):
    """Means of as many neighbours as leave MOST_POINTS points."""
    group = -(-len(points) // MOST_POINTS)
    parts = [points[i : i + group] for i in range(0, len(points), group)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts]


def curve(records, key):
    """Numbers that are not finite were written as null, and are left out."""
    return [(one["step"], one[key]) for one in records if one.get(key) is not None]


def curves(records):
    """A panel for the loss, one for each metric, one for the learning rate."""
    keys = list(dict.fromkeys(key for one in records for key in one))
    metrics = [key.removeprefix("train_") for key in keys if key.startswith("train_")]
    metrics += [key.removeprefix("test_") for key in keys if key.startswith("test_")]
    panels = []
    for name in dict.fromkeys(["loss", *metrics]):
        step = "loss" if name == "loss" else f"train_{name}"
        found = {"step": smoothed(curve(records, step))}
        for part in ("validation", "test"):
            found[part] = curve(records, f"{part}_{name}")
        found = {part: points for part, points in found.items() if points}
        if found:
            panels.append(svg.lines(name, "steps", found))
    rates = smoothed(curve(records, "learning_rate"))
    return panels + [svg.lines("learning rate", "steps", {"rate": rates})] if rates else panels


def picture_beside(path, ending, inputs):
    """The path of a file's picture: never one of the input files."""
    target = path.with_suffix(ending)
    if any(target.exists() and target.samefile(read) for read in inputs):
        fail(f"{target} is read, and its picture would overwrite it; give {path.name} another ending than .svg")
    return target


def arguments():
    parser = argparse.ArgumentParser(
        prog="plot_training.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("metrics", type=Path, help="what --metrics wrote")
    parser.add_argument("summary", type=Path, nargs="?", help="what --summary-json wrote")
    return parser.parse_args()


def main():
    options = arguments()
    records = read(options.metrics, by_lines)
    if not records or not all(isinstance(one, dict) and "step" in one for one in records):
        fail(f"{options.metrics} has no steps; a training writes it with --metrics FILE")
    inputs = [path for path in (options.metrics, options.summary) if path is not None]
    target = picture_beside(options.metrics, ".svg", inputs)
    svg.write(target, svg.page(curves(records)))
    print(target)
    if options.summary is None:
        return
    summary = read(options.summary, json.loads)
    confusion = summary.get("test_metrics", {}).get("confusion_matrix") if isinstance(summary, dict) else None
    if confusion is None:
        fail(f"{options.summary} has no confusion matrix; trainer.add(ConfusionMatrix()) measures one")
    same = options.summary.with_suffix(".svg").resolve() == target.resolve()
    target = picture_beside(options.summary, ".confusion.svg" if same else ".svg", inputs)
    svg.write(target, svg.page([svg.matrix("test data", "taken for class", "class", confusion)]))
    print(target)


if __name__ == "__main__":
    main()
