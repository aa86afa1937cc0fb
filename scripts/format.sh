#!/bin/sh
# format.sh fix|check: clang-format over all tracked sources. The version is pinned, since each
# formats a little differently.
set -eu
cd "$(git rev-parse --show-toplevel)"
format=clang-format-14
command -v $format >/dev/null 2>&1 || { echo "format.sh: needs $format (apt install $format)" >&2; exit 1; }
case ${1:-} in
  fix) options="-i" ;;
  check) options="--dry-run -Werror" ;;
  *) echo "format.sh: expected fix or check" >&2; exit 2 ;;
esac
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' '*.c' | xargs -0 -r $format $options
