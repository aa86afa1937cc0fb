#!/bin/sh
# part.sh NAME BUDGET_S COMMAND…: runs one part of CI and notes its time in build/ci/parts.tsv.
set -u
name=$1 budget=$2
shift 2
mkdir -p build/ci
printf '\n=== %s (budget %s s)\n' "$name" "$budget"
start=$(date +%s)
"$@"
status=$?
printf '%s\t%s\t%s\t%s\n' "$name" "$(($(date +%s) - start))" "$budget" "$status" >>build/ci/parts.tsv
[ $status = 0 ] || printf '=== %s failed with status %s\n' "$name" "$status"
exit $status
