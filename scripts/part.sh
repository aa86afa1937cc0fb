#!/bin/sh
# part.sh NAME BUDGET_S COMMAND…: runs one part of CI and notes in build/ci/parts.tsv its name, the
# seconds it took, those of processor time in it (a busy machine shows), its budget and its status.
set -u
name=$1 budget=$2
shift 2
mkdir -p build/ci
printf '\n=== %s (budget %s s)\n' "$name" "$budget"
start=$(date +%s)
"$@"
status=$?
seconds=$(($(date +%s) - start))
# The second line of `times` is the children's: 1m2.3s 0m4.5s
times >build/ci/times
cpu=$(awk 'NR == 2 { gsub("s", ""); for (i = 1; i <= 2; ++i) { split($i, t, "m"); cpu += t[1] * 60 + t[2] } printf "%d", cpu }' build/ci/times)
printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$seconds" "$cpu" "$budget" "$status" >>build/ci/parts.tsv
[ $status = 0 ] || printf '=== %s failed with status %s\n' "$name" "$status"
exit $status
