#!/bin/sh
# Prints the parts of CI that have run, with their times and budgets in seconds.
awk -F '\t' '
  BEGIN { printf "\n%-10s %8s %8s %8s\n", "part", "seconds", "cpu", "budget" }
  {
    printf "%-10s %8d %8d %8d  %s%s\n", $1, $2, $3, $4, ($5 == 0 ? "ok" : "FAILED"), ($2 > $4 ? ", over its budget" : "")
    total += $2; cpu += $3; budget += $4
  }
  END { printf "%-10s %8d %8d %8d\n", "all", total, cpu, budget }' build/ci/parts.tsv
