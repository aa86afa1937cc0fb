"""The program as a person uses it: answers, errors, exit codes, memory, the tokenizer on pipes."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MINISGL = os.environ.get("MINISGL_BINARY", str(ROOT / "build/release/bin/minisgl"))
MODEL = os.environ.get(
    "MINISGL_SMOLLM2", str(ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf")
)


def minisgl(*arguments, stdin="", environment=None, timeout=120):
    return subprocess.run(
        [MINISGL, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(environment or {})},
    )


def test_run_answers_a_chat():
    done = minisgl("run", "-m", MODEL, "--chat", "-p", "What is the capital of France?")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "The capital of France is Paris.\n"
    assert re.search(r"first token \d+\.\d+ s after start", done.stderr)


def test_run_reads_standard_input_and_files(tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Once upon a time")
    by_flag = minisgl("run", "-m", MODEL, "-n", "8", "-p", "Once upon a time")
    by_file = minisgl("run", "-m", MODEL, "-n", "8", "-f", str(prompt))
    by_pipe = minisgl("run", "-m", MODEL, "-n", "8", stdin="Once upon a time")
    assert by_flag.returncode == 0, by_flag.stderr
    assert by_flag.stdout == by_file.stdout == by_pipe.stdout != "\n"


def test_the_environment_and_a_config_file_set_options(tmp_path):
    wanted = minisgl("run", "-m", MODEL, "-n", "5", "-p", "The sea", "-q").stdout
    by_environment = minisgl(
        "run", "-p", "The sea", "-q", environment={"MINISGL_MODEL": MODEL, "MINISGL_MAX_TOKENS": "5"}
    )
    assert by_environment.stdout == wanted, by_environment.stderr
    toml = tmp_path / "options.toml"
    toml.write_text(f'model = "{MODEL}"\nmax-tokens = 5\n')
    assert minisgl("run", "-p", "The sea", "-q", "--config", str(toml)).stdout == wanted
    by_variable = minisgl("run", "-p", "The sea", "-q", environment={"MINISGL_CONFIG": str(toml)})
    assert by_variable.stdout == wanted, by_variable.stderr
    missing = minisgl("run", "-p", "x", environment={"MINISGL_CONFIG": "/nowhere.toml"})
    assert missing.returncode == 2 and "/nowhere.toml" in missing.stderr
    as_json = tmp_path / "options.json"
    as_json.write_text(json.dumps({"model": MODEL, "max-tokens": 5}))
    done = minisgl("run", "-p", "The sea", "-q", "--config", str(as_json))
    assert done.stdout == wanted, done.stderr
    # A flag wins over the file; a key that is no option is refused.
    assert minisgl("run", "-p", "The sea", "-q", "-n", "1", "--config", str(toml)).stdout != wanted
    as_json.write_text(json.dumps({"model": MODEL, "max_tokenz": 5}))
    assert minisgl("run", "-p", "x", "--config", str(as_json)).returncode == 2


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["run", "-p", "x"], 2, "no model given"),
        (["run", "-m", "/nowhere/model", "-p", "x"], 3, "/nowhere/model"),
        (["run", "-m", MODEL, "-p", "x", "--page-size", "0"], 2, "--page-size is 0"),
        (["run", "-m", MODEL, "-p", "x", "--dtype", "int3"], 2, "bfloat16"),
        (["run", "-m", MODEL, "-p", "x", "--attn", "nonsense"], 2, "reference"),
        (["run", "-m", MODEL, "-p", "x", "--isa", "mmx"], 2, "mmx"),
        (["run", "-m", MODEL, "-p", "x", "--max-seq-len", "999999"], 2, "8192"),
        (["run", "-m", MODEL, "-p", "x", "--temperature", "-1"], 2, "temperature"),
        (["run", "-m", MODEL, "-p", "x", "-n", "0"], 2, "max_tokens"),
        (["run", "-m", MODEL, "-p", "x", "--device", "cuda:77"], None, "cuda"),
        (["run", "-m", MODEL, "-p", "x", "--no-such-flag"], 2, "no-such-flag"),
        (["run", "-m", MODEL, "-p", "word " * 3000, "--max-seq-len", "1024"], 2, "at most 1023 fit"),
        (["run", "-m", __file__, "-p", "x"], None, "test_cli.py"),
        (["run", "-m", MODEL, "-f", "/nowhere.txt"], 3, "/nowhere.txt"),
        (["tokenize", "-m", MODEL], 2, "--ids"),
        ([], 2, "subcommand"),
    ],
)
def test_errors_are_one_clear_line_and_an_exit_code(arguments, code, message):
    begin = time.monotonic()
    done = minisgl(*arguments)
    assert done.returncode == code if code is not None else done.returncode > 0, done.stderr
    assert message in done.stderr + done.stdout
    assert done.returncode < 128, "it crashed"
    assert time.monotonic() - begin < 20


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's /dev/full")
def test_an_answer_that_cannot_be_written_is_an_error():
    for redirection in (">/dev/full", ">&-"):
        command = f'"$0" run -m "$1" -q -n 2 -p x {redirection}'
        done = subprocess.run(
            ["sh", "-c", command, MINISGL, MODEL], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 6, (redirection, done.stderr)
        assert "standard output" in done.stderr


def test_an_endless_prompt_is_refused():
    with open("/dev/zero", "rb") as endless:
        done = subprocess.run(
            [MINISGL, "run", "-m", MODEL, "-q"], stdin=endless, capture_output=True, timeout=120
        )
    assert done.returncode == 2
    assert b"standard input is larger" in done.stderr


def test_cut_off_models_are_refused(tmp_path):
    whole = Path(MODEL).read_bytes()
    for length in (0, 3, 100, 20_000, len(whole) // 2, len(whole) - 1):
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(whole[:length])
        done = minisgl("run", "-m", str(cut), "-p", "x")
        assert 0 < done.returncode < 128, f"{length} bytes: {done.returncode} {done.stderr}"
        assert "cut.gguf" in done.stderr


def test_memory_stays_near_the_packed_weights():
    # Started by a small process: a child's peak counts its parent's pages until it runs its program.
    measure = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    command = [MINISGL, "run", "-m", MODEL, "-p", "Once upon a time", "-n", "32", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", measure, *command], check=True, capture_output=True, text=True
    )
    weights = os.path.getsize(MODEL)
    kv = 40 * 46080  # tokens, float32
    assert int(done.stdout) * 1024 <= 1.5 * weights + kv + 64 * 2**20


def test_tokenize_on_pipes():
    lines = [
        {"text": "Hello, world!"},
        {"text": "<|im_end|>", "parse_special": True},
        {"text": "<|im_end|>", "parse_special": False},
        {"text": "鱻䨻🦩 naïve"},
    ]
    done = minisgl(
        "tokenize", "-m", MODEL, "--ids", "--stdin-jsonl", stdin="\n".join(map(json.dumps, lines))
    )
    assert done.returncode == 0, done.stderr
    ids = [json.loads(line)["ids"] for line in done.stdout.splitlines()]
    assert ids[1] == [2]
    assert len(ids[2]) > 1
    back = minisgl("tokenize", "-m", MODEL, "--decode", "--stdin-jsonl", stdin=done.stdout)
    assert [json.loads(line)["text"] for line in back.stdout.splitlines()] == [
        line["text"] for line in lines
    ]
    bad = minisgl("tokenize", "-m", MODEL, "--ids", "--stdin-jsonl", stdin='{"text": 5}\n')
    assert bad.returncode == 2 and "line 1" in bad.stderr


def test_chat_prompts(tmp_path):
    body = tmp_path / "chat.json"
    body.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi"}]}))
    done = minisgl("tokenize", "-m", MODEL, "--chat", str(body), "--print-prompt")
    assert done.stdout.endswith("<|im_start|>user\nHi<|im_end|>\n"), done.stderr
    template = tmp_path / "t.jinja"
    template.write_text("{% for m in messages %}[{{ m.content }}]{% endfor %}")
    done = minisgl("tokenize", "--chat", str(body), "--template", str(template), "--print-prompt")
    assert done.stdout == "[Hi]"
    template.write_text("{{ raise_exception('roles must alternate') }}")
    done = minisgl("tokenize", "--chat", str(body), "--template", str(template), "--print-prompt")
    assert done.returncode != 0 and "roles must alternate" in done.stderr


def test_chat_in_a_pipe_remembers_and_leaves():
    done = minisgl("chat", "-m", MODEL, stdin="What is the capital of France?\n/stats\n/nonsense\n")
    assert done.returncode == 0, done.stderr
    assert "The capital of France is Paris." in done.stdout
    assert "prompt tokens" in done.stdout


def test_inspect_and_help():
    assert "LlamaForCausalLM" in minisgl("inspect", "-m", MODEL).stdout
    assert minisgl("--version").stdout.strip()
    text = minisgl("run", "--help").stdout
    for flag in ("--page-size", "--max-running-requests", "--attention-backend", "MINISGL_DTYPE"):
        assert flag in text


def test_a_file_of_requests_is_answered_in_one_batch(tmp_path):
    requests = tmp_path / "requests.jsonl"
    answers = tmp_path / "answers.jsonl"
    lines = [
        {"id": "a", "messages": [{"role": "user", "content": "What is the capital of France?"}]},
        {"id": 2, "prompt": "Once upon a time", "max_tokens": 6, "n": 2, "temperature": 1, "seed": 1},
        {"prompt": "x", "temperature": -1},
    ]
    requests.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    done = minisgl("run", "-m", MODEL, "--jsonl", str(requests), "-o", str(answers), "-q", "-n", "40")
    assert done.returncode == 0, done.stderr
    assert re.search(r"4 of 4 answers, \d+ tokens", done.stderr)
    first, second, third = map(json.loads, answers.read_text().splitlines())
    assert first["id"] == "a"
    assert first["outputs"][0]["text"] == "The capital of France is Paris."
    assert second["id"] == 2 and len(second["outputs"]) == 2
    assert all(len(output["token_ids"]) == 6 for output in second["outputs"])
    assert "id" not in third and "temperature" in third["error"]
    requests.write_text('{"prompt": "x"}\n{"promt": "x"}\n')
    done = minisgl("run", "-m", MODEL, "--jsonl", str(requests))
    assert done.returncode == 2 and "line 2" in done.stderr and "promt" in done.stderr
