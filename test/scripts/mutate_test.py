#!/usr/bin/env python3
"""scripts/mutate.py changes operators, bounds, numbers and statements, and leaves comments, texts and errors alone."""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import mutate


def changes(line: str, before: str = "  x = y;") -> set[str]:
    return {each.after.strip() for each in mutate.mutations_of("file.cpp", f"{before}\n{line}\n") if each.line == 2}


assert changes("  for (int i = 0; i < size - 1; ++i) {") == {
    "for (int i = 1; i < size - 1; ++i) {", "for (int i = 0; i <= size - 1; ++i) {", "for (int i = 0; i < size + 1; ++i) {",
    "for (int i = 0; i < size - 2; ++i) {"}
assert changes("  co_await transport_.send(right(), chunk(rank));") == {""}
assert changes("  total += count * width;") == {"total -= count * width;", "total += count / width;", ""}
assert changes("  if (a == b) return c;") == {"if (a != b) return c;"}
assert changes("      more(a));", before="  call(b,") == set()  # half of a statement
assert changes("  const int a = b;") == set()
assert changes('  print("a + 1 < b", c);  // d == 2') == {""}
assert changes("  // a + b < 3") == set()
assert changes('  if (a < b) throw InputError("no");') == set()
assert changes("  static_assert(a == 1);") == set()
assert changes("  x = 0x10 + y1;") == {"x = 0x10 - y1;", ""}
assert changes("  const double share = 0.5;") == set()
assert changes("  std::vector<std::byte> a;") == set()
folders = {each.path.rsplit("/", 1)[0] for each in mutate.all_mutations("*")}
assert folders >= {*mutate.COVERED}, folders
assert {each.path for each in mutate.all_mutations("*/allreduce/ring.cpp")} == {"collectives/host/algorithms/allreduce/ring.cpp"}
print("mutations are those that are meant")
