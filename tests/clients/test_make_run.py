"""What `make run` does, and what the program says when it cannot do what it is asked.

Runs build/release/bin/minisgl (or MINISGL_PROGRAM) on build/models (or MODEL).
"""

import os
import pty
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("MINISGL_PROGRAM", str(ROOT / "build/release/bin/minisgl"))
MODEL = str(ROOT / os.environ.get("MODEL", "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"))
QUESTION = "What is the capital of France?"
INVALID_ARGUMENT, NOT_FOUND, BAD_FILE = 2, 3, 4


def minisgl(*arguments, stdin="", **options):
    return subprocess.run(
        [PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=120, **options
    )


def answer(*arguments, **options):
    result = minisgl("run", "-m", MODEL, "-q", "--temperature", "0", *arguments, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_version_and_help():
    assert minisgl("--version").stdout.strip() == "0.1.0"
    for command in ("run", "chat", "pull", "inspect", "tokenize"):
        result = minisgl(command, "--help")
        assert result.returncode == 0
        assert "--" in result.stdout


@pytest.mark.parametrize("flag", [["--page-size", "4"], ["--threads", "1"], ["--max-prefill-length", "3"]])
def test_tokens_do_not_depend_on(flag):
    assert answer("--max-tokens", "24", "-p", QUESTION, *flag) == answer(
        "--max-tokens", "24", "-p", QUESTION
    )


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["run", "-m", "/no/such/model.gguf", "-p", "x"], NOT_FOUND, "/no/such/model.gguf"),
        (["run", "-m", __file__, "-p", "x"], None, __file__),
        (["run", "-m", MODEL], INVALID_ARGUMENT, "no prompt"),
        (["run", "-m", MODEL, "--no-such-flag"], INVALID_ARGUMENT, "--no-such-flag"),
        (["run", "-m", MODEL, "-p", "x", "--attn", "magic"], INVALID_ARGUMENT, "magic"),
        (["run", "-m", MODEL, "-p", "x", "--temperature", "-1"], INVALID_ARGUMENT, "temperature"),
        (["run", "-m", MODEL, "-p", "x", "--max-seq-len", "0x"], INVALID_ARGUMENT, "0x"),
        (["no-such-command"], INVALID_ARGUMENT, "no-such-command"),
        ([], INVALID_ARGUMENT, "subcommand"),
    ],
)
def test_errors_have_an_exit_code_and_say_what_is_wrong(arguments, code, message):
    result = minisgl(*arguments)
    assert message in result.stderr
    assert result.stdout == ""
    if code is None:
        assert result.returncode not in (0, INVALID_ARGUMENT)
    else:
        assert result.returncode == code


def test_a_truncated_model_is_a_bad_file(tmp_path):
    cut = tmp_path / "cut.gguf"
    with open(MODEL, "rb") as whole:
        cut.write_bytes(whole.read(5_000_000))
    result = minisgl("run", "-m", str(cut), "-p", "x")
    assert result.returncode == BAD_FILE
    assert str(cut) in result.stderr


def run_script(stdin, **variables):
    return subprocess.run(
        ["sh", "scripts/run.sh"],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env=os.environ | {"MODEL": MODEL} | variables,
    )


def test_make_run_answers_a_prompt_standard_input_or_its_own_question():
    for result in (
        run_script("", PROMPT=QUESTION),
        run_script(QUESTION),
        run_script(""),
    ):
        assert result.returncode == 0, result.stderr
        assert "Paris" in result.stdout


def test_a_terminal_gets_a_chat():
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ["sh", "scripts/run.sh"],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "PROMPT"} | {"MODEL": MODEL},
    )
    os.close(slave)
    os.write(master, f"{QUESTION}\n/exit\n".encode())
    stdout, stderr = process.communicate(timeout=120)
    os.close(master)
    assert process.returncode == 0, stderr.decode()
    assert "Paris" in stdout.decode()
