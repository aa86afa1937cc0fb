#!/bin/sh
# Prints the parts of CI that have run, with their times and budgets.
awk -F '\t' '
  BEGIN { printf "\n%-10s %8s %8s  %s\n", "part", "seconds", "budget", "" }
  {
    printf "%-10s %8d %8d  %s%s\n", $1, $2, $3, $4 == 0 ? "ok" : "FAILED", $2 > $3 ? ", over its budget" : ""
    total += $2; budget += $3
  }
  END { printf "%-10s %8d %8d\n", "all", total, budget }' build/ci/parts.tsv
