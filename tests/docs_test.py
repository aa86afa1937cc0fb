#!/usr/bin/env python3
"""docs_test.py FILE.md…: runs the commands that the documents show.

Every ```sh block is run by bash from the repository's root, with MODEL set to the default model and
`minisgl` on the path; it must exit with 0. A block below the comment `<!-- not run: reason -->` is
left out. A fence that is never closed, or a comment without a reason, is an error.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_RUN = re.compile(r"^\s*<!-- not run: \S.* -->\s*$")
TIMEOUT_S = 300


def sh_blocks(text):
    """(line number, commands, run) of every sh block."""
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        fence = re.match(r"^(\s*)```(\w*)\s*$", lines[i])
        if not fence:
            i += 1
            continue
        begin = i
        i += 1
        while i < len(lines) and lines[i].strip() != "```":
            i += 1
        if i == len(lines):
            raise SystemExit(f"line {begin + 1}: this code block is never closed")
        if fence.group(2) == "sh":
            above = lines[begin - 1] if begin > 0 else ""
            if "not run" in above and not NOT_RUN.match(above):
                raise SystemExit(f"line {begin}: say why: <!-- not run: reason -->")
            yield begin + 1, "\n".join(lines[begin + 1 : i]), not NOT_RUN.match(above)
        i += 1


def run_block(commands):
    environment = dict(os.environ)
    environment["PATH"] = f"{ROOT}/build/release/bin:{environment['PATH']}"
    environment.setdefault("MODEL", f"{ROOT}/build/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )


def main(paths):
    passed = failed = skipped = 0
    for path in paths:
        for line, commands, run in sh_blocks(Path(path).read_text(encoding="utf-8")):
            if not run:
                skipped += 1
                continue
            start = time.monotonic()
            result = run_block(commands)
            if result.returncode == 0:
                passed += 1
                print(f"{path}:{line}: ok, {time.monotonic() - start:.1f} s", flush=True)
            else:
                failed += 1
                print(f"{path}:{line}: exit code {result.returncode}\n{commands}\n{result.stdout}")
    print(f"docs: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
