#!/bin/sh
# setup.sh PART…: installs the Debian packages that the parts need. Parts: run, test, ci.
# Does nothing, and asks no server, when all are there. Works as root and with sudo.
set -eu

run_packages="g++ cmake ninja-build ccache pkg-config python3 python3-pip
  libfmt-dev libspdlog-dev nlohmann-json3-dev libsimdjson-dev libcli11-dev
  libcurl4-openssl-dev libpcre2-dev libutf8proc-dev"
test_packages="libgtest-dev libgmock-dev python3-venv"
ci_packages="clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14"

packages=""
for part in "$@"; do
  case $part in
    run) packages="$packages $run_packages" ;;
    test) packages="$packages $test_packages" ;;
    ci) packages="$packages $ci_packages" ;;
    *) echo "setup.sh: unknown part '$part', expected run, test or ci" >&2; exit 2 ;;
  esac
done
packages=$(echo $packages)  # one line

if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
  tools=""
  for tool in g++ cmake ninja pkg-config python3; do
    command -v $tool >/dev/null 2>&1 || tools="$tools $tool"
  done
  cat >&2 <<TEXT
setup.sh: this system has no apt-get, so nothing is installed here. Please install what the
following Debian packages hold, with the package manager of this system:
  $packages
TEXT
  [ -z "$tools" ] || { echo "setup.sh: cannot go on without:$tools" >&2; exit 1; }
  echo "setup.sh: the tools are there; going on. CMake names any library that is missing." >&2
  exit 0
fi

missing=""
for package in $packages; do
  # A line like "install ok installed"; nothing for packages that dpkg does not know.
  case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true) in
    *" installed") ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || {
    echo "setup.sh: these packages are missing:$missing" >&2
    echo "setup.sh: run 'apt-get install -y$missing' as root, then repeat this command" >&2
    exit 1
  }
  as_root="sudo"
fi

install() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}
echo "setup.sh: installing$missing"
# The package lists may be empty or old on a fresh machine: refreshed only when they are.
if ! install; then
  $as_root apt-get update -q
  install
fi
