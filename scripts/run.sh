#!/bin/sh
# The main job, as `make run` starts it: PROMPT is answered once; a terminal gets a chat; without a
# terminal standard input is answered, or a built-in prompt when that is empty.
set -eu
minisgl=build/release/bin/minisgl

if [ -n "${PROMPT:-}" ]; then
  exec "$minisgl" run -m "$MODEL" --chat -p "$PROMPT"
fi
if [ -t 0 ]; then
  exec "$minisgl" chat -m "$MODEL"
fi
text=$(cat)
exec "$minisgl" run -m "$MODEL" --chat -p "${text:-What is the capital of France?}"
