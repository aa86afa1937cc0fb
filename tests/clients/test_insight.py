"""What the program tells about itself: verify, record and replay, trace, bench scheduler."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MINISGL = os.environ.get("MINISGL_BINARY", str(ROOT / "build/release/bin/minisgl"))
SMOLLM2 = os.environ.get(
    "MINISGL_SMOLLM2", str(ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf")
)
QWEN3 = str(ROOT / "tests/data/models/qwen3")


def minisgl(*arguments, timeout=240):
    return subprocess.run(
        [MINISGL, *arguments], capture_output=True, text=True, timeout=timeout
    )


def test_verify_holds_the_engine_to_its_contract_and_to_a_reference(tmp_path):
    arguments = ["verify", "-m", QWEN3, "--dtype", "float32", "--num-pages", "2048", "--tokens", "8"]
    expected = Path(QWEN3) / "expected.json"
    done = minisgl(*arguments, "--reference", str(expected))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DIFFERENT" not in done.stdout
    assert "page size 16" in done.stdout and "reference:" in done.stdout
    assert "13 of 13 checks passed" in done.stdout
    # It can fail.
    wrong = json.loads(expected.read_text())
    wrong["cases"][0]["greedy"][2] += 1
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    done = minisgl(*arguments, "--reference", str(tmp_path / "wrong.json"))
    assert done.returncode == 70
    assert "1 of 13 checks failed" in done.stderr


def test_a_recording_is_replayed_and_a_difference_is_found(tmp_path):
    recording = tmp_path / "recording.jsonl"
    done = minisgl("run", "-m", SMOLLM2, "-p", "Once upon a time", "-n", "12", "--temperature", "1",
                   "--seed", "3", "--max-seq-len", "256", "--record", str(recording))
    assert done.returncode == 0, done.stderr
    again = minisgl("replay", str(recording))
    assert again.returncode == 0, again.stderr
    assert "12 tokens, all as recorded" in again.stdout
    lines = recording.read_text().splitlines()
    assert json.loads(lines[0])["isa"] not in ("", "auto")
    submit = json.loads(lines[1])
    submit["submit"]["input_ids"][0] += 1
    lines[1] = json.dumps(submit)
    recording.write_text("\n".join(lines) + "\n")
    changed = minisgl("replay", str(recording))
    assert changed.returncode == 70
    assert "comes out differently" in changed.stderr


def test_a_trace_is_json_with_a_track_for_each_part(tmp_path):
    trace = tmp_path / "trace.json"
    done = minisgl("run", "-m", SMOLLM2, "-p", "The sea", "-n", "5", "--max-seq-len", "256",
                   "--trace", str(trace))
    assert done.returncode == 0, done.stderr
    events = json.loads(trace.read_text())
    tracks = {e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    assert tracks == {"scheduler", "compute", "request 0"}
    assert sum(e["ph"] == "X" and e["tid"] == 2 for e in events) >= 5


def test_the_scheduler_s_cost_is_a_table_and_a_json_line():
    done = minisgl("bench", "scheduler", "--requests", "1", "16", "--tree-tokens", "10000")
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert [row["requests"] for row in line["decode_step"]] == [1, 16]
    assert line["match_insert"][0]["median_us"] > 0
