#!/bin/sh
# ci.sh [PART…]: the parts of `make ci`; all of them when none is named. Goes on after a failure, so
# that one run shows everything, and fails in the end.
set -u
cd "$(git rev-parse --show-toplevel)" || exit 1
jobs=$(nproc)

# One clang build serves the unit tests under ASan + UBSan and the fuzz targets.
asan_build() {
  cmake --preset asan -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
    -DMINISGL_SANITIZE=address,undefined,fuzzer-no-link -DMINISGL_BUILD_FUZZERS=ON \
    -DMINISGL_BUILD_EXAMPLES=OFF -DMINISGL_WERROR=ON
}

part_format() { scripts/format.sh check; }

# The sources of src/ that this machine builds: the CUDA plugin's are not among them.
part_tidy() {
  cmake --preset release >/dev/null || return 1
  sed -n 's|^ *"file": "\(.*\)",*$|\1|p' build/release/compile_commands.json | sort -u |
    grep "^$PWD/src/" | xargs -r -n 2 -P "$jobs" clang-tidy-14 -p build/release --quiet
}

part_asan() {
  asan_build && cmake --build build/asan --target sanitizer_tests &&
    ctest --test-dir build/asan --output-on-failure -L sanitizer -j "$jobs"
}

part_tsan() {
  cmake --preset tsan -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
    -DMINISGL_BUILD_EXAMPLES=OFF &&
    cmake --build build/tsan --target thread_tests &&
    ctest --test-dir build/tsan --output-on-failure -L threads -j "$jobs"
}

# Each target starts from its committed corpus; what it finds new stays in the build folder.
part_fuzz() {
  asan_build >/dev/null && cmake --build build/asan --target fuzzers || return 1
  for target in build/asan/tests/fuzz/*_fuzz; do
    name=$(basename "$target" _fuzz)
    found=build/asan/fuzz/$name
    mkdir -p "$found"
    echo "fuzzing $name for ${FUZZ_S:-30} s"
    "$target" -max_total_time="${FUZZ_S:-30}" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$found/" "$found" "tests/fuzz/corpus/$name" >"$found.log" 2>&1 || {
      tail -n 40 "$found.log"
      return 1
    }
    grep 'number_of_executed_units' "$found.log"
  done
}

part_docs() { python3 tests/docs_test.py README.md docs/*.md; }

failed=""
part() {  # name, budget in seconds
  scripts/part.sh "$1" "$2" "$0" --only "$1" || failed="$failed $1"
}

if [ "${1:-}" = --only ]; then
  "part_$2"
  exit $?
fi
# tidy takes 20 minutes of processor time: by name only, see `make tidy`.
[ $# -gt 0 ] || set -- format asan fuzz tsan docs
for name in "$@"; do
  case $name in
    format) part format 30 ;;
    tidy) part tidy 420 ;;
    asan) part asan 720 ;;
    fuzz) part fuzz 300 ;;
    tsan) part tsan 360 ;;
    docs) part docs 120 ;;
    *) echo "ci.sh: unknown part '$name'" >&2; exit 2 ;;
  esac
done
[ -z "$failed" ] || { echo "ci.sh: failed:$failed" >&2; exit 1; }
