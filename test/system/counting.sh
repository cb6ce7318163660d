# shellcheck shell=bash
# Sourced by tests that run counted_training, after lib.sh: starts it and counts the samples that it has used.

attempt=0 # a start of the training

# count RANKS OPTION…: a start; the summary goes to $work/summary.json.
count() {
  local ranks=$1 launcher=(mpirun -n "$1")
  ((ranks > 1)) || launcher=()
  shift
  attempt=$((attempt + 1))
  rm -f "$work/summary.json"
  what="$ranks ranks: counted_training $*"
  # What a killed rank leaves as the launcher's status must not look like a time that is over.
  COUNT_LOG=$work/log COUNT_ATTEMPT=$attempt run bash -c '"$@"; status=$?; exit $((status > 128 ? 1 : status))' - \
    "${launcher[@]}" "$counted" --summary-json "$work/summary.json" "$@"
}

# all_seen_once EPOCHS [STEP]: in the history that survives, the latest start of each step (from STEP on), every one of the
# 997 samples was used once in each epoch of 10 steps. Where STEP is in the midst of an epoch, that one has fewer.
all_seen_once() {
  awk -v epochs="$1" -v first="${2:-1}" '
    $1 > latest[$2] { latest[$2] = $1 }
    { lines[NR] = $0 }
    END {
      for (i = 1; i <= NR; ++i) {
        n = split(lines[i], word, " ")
        step = word[2]
        if (word[1] != latest[step] || step < first) continue
        for (k = 3; k <= n; ++k) {
          ++used
          if (seen[int((step - 1) / 10) "," word[k]]++) { print "sample " word[k] " twice, at step " step; bad = 1 }
        }
      }
      wanted = epochs * 997 - (first - 1 - int((first - 1) / 10) * 10) * 100 - int((first - 1) / 10) * 997
      if (used != wanted) { print used + 0 " samples, expected " wanted; bad = 1 }
      exit bad
    }' "$work"/log.* >"$work/counted" || fail "$(head -3 "$work/counted")"
}
