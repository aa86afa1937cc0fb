"""Model downloads against a hub of our own, and a cache shared with huggingface_hub.

Runs the hub_tool program (MINISGL_HUB_TOOL, else the release build's).
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hub_server import Hub, Repo, git_oid, sha256

ROOT = Path(__file__).resolve().parents[2]
TOOL = os.environ.get("MINISGL_HUB_TOOL", str(ROOT / "build/release/tests/loader/hub_tool"))
NOT_FOUND, BAD_FILE, UNSUPPORTED, RESOURCE, NETWORK = 3, 4, 5, 6, 7
TOKEN = "hf_secret"


def random_bytes(size, seed=0):
    return random.Random(seed).randbytes(size)


def safetensors_repo(**changes):
    weights = random_bytes(300_000)
    files = {
        ".gitattributes": b"*.safetensors lfs",
        "README.md": b"# model",
        "config.json": b'{"model_type": "llama"}',
        "generation_config.json": b"{}",
        "tokenizer.json": b'{"version": "1.0"}',
        "templates/tools.jinja": b"{{ x }}",
        "empty.jinja": b"",
        "model.safetensors": weights,
        "consolidated.safetensors": b"other",
        "pytorch_model.bin": b"pickle",
    }
    return Repo(files=files, lfs={"model.safetensors", "consolidated.safetensors"}, **changes)


WANTED = {"config.json", "generation_config.json", "tokenizer.json", "templates/tools.jinja", "empty.jinja", "model.safetensors"}


@pytest.fixture
def hub():
    hub = Hub()
    hub.repos["org/model"] = safetensors_repo()
    yield hub
    hub.close()


@pytest.fixture
def environment(hub, tmp_path):
    """Nothing of the machine's own configuration, proxies and tokens."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": hub.url,
        "MODELSCOPE_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "no_proxy": "127.0.0.1,localhost",
    }


class Pull:
    def __init__(self, environment):
        self.environment = environment

    def start(self, *args, **options):
        return subprocess.Popen(
            [TOOL, *args], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def __call__(self, *args, **options):
        """The path that was resolved."""
        process = self.start(*args, **options)
        out, self.err = process.communicate(timeout=60)
        assert process.returncode == 0, self.err
        return Path(out.strip())

    def fails(self, kind, *args, **options):
        """The message of the error."""
        process = self.start(*args, **options)
        out, err = process.communicate(timeout=60)
        assert process.returncode == kind, (process.returncode, out, err)
        return err


@pytest.fixture
def pull(environment):
    return Pull(environment)


@pytest.fixture
def cache(environment):
    return Path(environment["HF_HOME"]) / "hub"


def files_under(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}


def test_a_fresh_download_fills_the_cache_in_its_layout(hub, pull, cache):
    path = pull("org/model")
    repo = hub.repos["org/model"]
    assert path == cache / "models--org--model/snapshots" / repo.commit
    assert files_under(path) == WANTED
    for name in WANTED:
        assert (path / name).read_bytes() == repo.files[name]
        assert os.readlink(path / name) == "../" * (2 + name.count("/")) + f"blobs/{repo.etag(name)}"
    assert (cache / "models--org--model/refs/main").read_text() == repo.commit
    assert files_under(cache / "models--org--model/blobs") == {repo.etag(name) for name in WANTED}
    assert (cache / "CACHEDIR.TAG").exists()


def test_a_second_run_asks_for_the_listing_only(hub, pull):
    path = pull("org/model")
    hub.requests.clear()
    assert pull("org/model") == path
    assert [r.path for r in hub.requests] == ["/api/models/org/model/revision/main"]


def test_without_a_terminal_progress_is_plain_lines(pull):
    pull("org/model")
    assert "\r" not in pull.err and "\x1b" not in pull.err
    assert "100%" in pull.err and "300 kB" in pull.err


def test_on_a_terminal_one_line_is_redrawn(pull):
    terminal, tool_end = os.openpty()
    with subprocess.Popen([TOOL, "org/model"], env=pull.environment, stdout=subprocess.PIPE, stderr=tool_end) as process:
        process.communicate(timeout=60)
    os.close(tool_end)
    shown = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert shown.count("\r\x1b[K") > 1 and "100% [####################]" in shown
    assert max(len(line) for line in shown.replace("\n", "").split("\r")) <= 80 + len("\x1b[K")


def test_a_new_commit_downloads_what_changed_only(hub, pull):
    old = pull("org/model")
    repo = hub.repos["org/model"]
    repo.commit = "f" * 40
    repo.files["config.json"] = b'{"model_type": "qwen3"}'
    hub.requests.clear()
    new = pull("org/model")
    assert new.name == "f" * 40 and old.exists()
    assert (new / "config.json").read_bytes() == repo.files["config.json"]
    assert {r.path.split("/")[-1] for r in hub.sent_bodies()} == {"config.json"}


def test_a_cut_connection_is_resumed_within_a_run(hub, pull):
    hub.faults.cut_after["model.safetensors"] = [100_000, 50_000]
    path = pull("org/model")
    assert (path / "model.safetensors").read_bytes() == hub.repos["org/model"].files["model.safetensors"]
    ranges = [r.headers.get("range") for r in hub.requests if r.server == "storage"]
    assert ranges == [None, "bytes=100000-", "bytes=150000-"]
    # Within a run the storage's own validator is known.
    assert [r.headers.get("if-range") for r in hub.requests if r.server == "storage"][1] is not None


def test_a_killed_download_is_resumed_by_the_next_run(hub, pull, cache):
    repo = hub.repos["org/model"]
    hub.faults.stall_after["model.safetensors"] = [120_000]
    process = pull.start("org/model")
    partial = cache / "models--org--model/blobs" / (repo.etag("model.safetensors") + ".incomplete")
    wait_until(lambda: partial.exists() and partial.stat().st_size == 120_000)
    process.kill()
    process.wait()
    assert not (cache / "models--org--model/refs/main").exists()
    path = pull("org/model")
    assert (path / "model.safetensors").read_bytes() == repo.files["model.safetensors"]
    assert hub.requests[-1].headers["range"] == "bytes=120000-"
    assert not partial.exists()


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


def test_a_server_that_ignores_ranges_starts_over(hub, pull):
    hub.faults.ignore_range = True
    hub.faults.cut_after["model.safetensors"] = [100_000]
    path = pull("org/model")
    assert (path / "model.safetensors").read_bytes() == hub.repos["org/model"].files["model.safetensors"]


def test_a_partial_file_of_other_bytes_is_found_out_and_replaced(hub, pull, cache):
    repo = hub.repos["org/model"]
    blobs = cache / "models--org--model/blobs"
    blobs.mkdir(parents=True)
    (blobs / (repo.etag("model.safetensors") + ".incomplete")).write_bytes(b"x" * 1000)
    (blobs / (repo.etag("config.json") + ".incomplete")).write_bytes(b"x" * 1000)  # longer than the file
    path = pull("org/model")
    assert (path / "model.safetensors").read_bytes() == repo.files["model.safetensors"]
    assert (path / "config.json").read_bytes() == repo.files["config.json"]


def test_a_small_file_that_changed_is_not_glued_to_its_old_beginning(hub, pull, cache):
    """If-Range: the hub's own etag guards files that have no checksum."""
    repo = hub.repos["org/model"]
    repo.files["tokenizer.json"] = random_bytes(200_000, 1)
    hub.faults.cut_after["tokenizer.json"] = [100_000]
    path = pull("org/model")
    assert (path / "tokenizer.json").read_bytes() == repo.files["tokenizer.json"]
    resumed = hub.bodies("tokenizer.json")[1]
    assert resumed.headers["if-range"] == f'"{git_oid(repo.files["tokenizer.json"])}"'


def test_wrong_bytes_are_refused_and_leave_nothing_behind(hub, pull, cache):
    hub.faults.corrupt["model.safetensors"] = 1
    error = pull.fails(BAD_FILE, "org/model")
    repo = hub.repos["org/model"]
    assert "model.safetensors" in error and repo.etag("model.safetensors") in error
    blobs = files_under(cache / "models--org--model/blobs")
    assert not any(name.startswith(repo.etag("model.safetensors")) for name in blobs)
    path = pull("org/model")
    assert (path / "model.safetensors").read_bytes() == repo.files["model.safetensors"]


def test_a_file_of_another_length_than_announced_is_refused(hub, pull):
    hub.faults.linked_size["model.safetensors"] = 299_999
    assert "299999" in pull.fails(BAD_FILE, "org/model")
    hub.faults.linked_size["model.safetensors"] = 300_001
    assert "300001" in pull.fails(BAD_FILE, "org/model")


def test_the_token_is_sent_to_the_endpoint_alone(hub, pull, environment):
    hub.repos["org/model"].token = TOKEN
    environment["HF_TOKEN"] = TOKEN
    pull("org/model")
    for request in hub.requests:
        expected = f"Bearer {TOKEN}" if request.server == "hub" else None
        assert request.headers.get("authorization") == expected
    assert any(r.server == "storage" for r in hub.requests)


def test_the_token_file_is_read(hub, pull, environment):
    hub.repos["org/model"].token = TOKEN
    home = Path(environment["HF_HOME"])
    home.mkdir()
    (home / "token").write_text(TOKEN + "\n")
    pull("org/model")


def test_without_a_token_none_is_sent(hub, pull):
    pull("org/model")
    assert not any("authorization" in r.headers for r in hub.requests)


def test_a_renamed_repository_is_followed_with_the_token(hub, pull, environment):
    hub.renamed["old/name"] = "org/model"
    environment["HF_TOKEN"] = TOKEN
    path = pull("old/name")
    assert "models--old--name" in str(path)
    assert all("authorization" in r.headers for r in hub.requests if r.server == "hub")


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://localhost/x", "gopher://localhost/"])
def test_redirects_lead_to_http_only(hub, pull, location):
    hub.faults.redirect_to["model.safetensors"] = location
    assert "http" in pull.fails(NETWORK, "org/model")


def test_endless_redirects_end(hub, pull):
    hub.renamed["old/name"] = "old/name"
    assert "redirects" in pull.fails(NETWORK, "old/name")


def test_a_private_or_missing_repository_says_both(hub, pull, environment):
    error = pull.fails(NOT_FOUND, "org/none")
    assert "org/none" in error and "local path" in error and "HF_TOKEN" in error
    environment["HF_TOKEN"] = "hf_of_somebody_else"
    hub.repos["org/model"].token = TOKEN
    error = pull.fails(NOT_FOUND, "org/model")
    assert "has no access" in error and "hf_of" not in error


def test_a_gated_repository_says_so(hub, pull):
    hub.repos["org/model"].gated = True
    error = pull.fails(RESOURCE, "org/model")
    assert "gated" in error and f"{hub.url}/org/model" in error and "HF_TOKEN" in error


def test_403_names_the_token(hub, pull, environment):
    environment["HF_TOKEN"] = TOKEN
    hub.faults.status["config.json"] = [403]
    assert "403" in pull.fails(RESOURCE, "org/model")


def test_a_revision_that_is_not_there_is_named(pull):
    assert "no revision 'v9'" in pull.fails(NOT_FOUND, "org/model@v9")


def test_a_branch_with_a_slash_and_a_commit_are_revisions(hub, pull, cache):
    repo = hub.repos["org/model"]
    repo.revisions.add("refs/pr/1")
    path = pull("org/model@refs/pr/1")
    assert (cache / "models--org--model/refs/refs/pr/1").read_text() == repo.commit
    assert pull(f"org/model@{repo.commit}") == path
    assert pull("--revision", "refs/pr/1", "org/model") == path


def test_a_listed_file_that_the_server_lacks_is_named(hub, pull):
    repo = hub.repos["org/model"]
    repo.listing = [*repo.files, "added_tokens.json"]
    assert "added_tokens.json" in pull.fails(NOT_FOUND, "org/model")


def test_a_passing_failure_is_retried(hub, pull):
    hub.faults.api_status = [503, 429]
    hub.faults.status["config.json"] = [500, 502, 504]
    hub.faults.status["model.safetensors"] = [503]
    pull("org/model")


def test_a_lasting_failure_ends_with_the_status(hub, pull):
    hub.faults.api_status = [503] * 100
    error = pull.fails(NETWORK, "org/model")
    assert "503" in error and "tried 4 times" in error


def test_a_silent_server_times_out_and_is_asked_again(hub, pull):
    hub.faults.stall_after["model.safetensors"] = [10]
    path = pull("--timeout-s", "1", "org/model")
    assert (path / "model.safetensors").read_bytes() == hub.repos["org/model"].files["model.safetensors"]


def test_nobody_there_is_a_network_error(hub, pull, environment):
    environment["HF_ENDPOINT"] = "http://127.0.0.1:1"
    assert "127.0.0.1" in pull.fails(NETWORK, "org/model")


def test_without_network_the_cache_is_used(hub, pull, environment):
    path = pull("org/model")
    environment["HF_ENDPOINT"] = "http://127.0.0.1:1"
    assert pull("org/model") == path
    assert "cache" in pull.err


def test_offline_uses_the_cache_alone(hub, pull, environment):
    path = pull("org/model")
    hub.requests.clear()
    environment["HF_HUB_OFFLINE"] = "1"
    assert pull("org/model") == path
    assert pull(f"org/model@{hub.repos['org/model'].commit}") == path
    error = pull.fails(NOT_FOUND, "org/other")
    assert "org/other@main" in error and "HF_HUB_OFFLINE" in error
    (path / "model.safetensors").unlink()
    assert "model.safetensors" in pull.fails(NOT_FOUND, "org/model")
    assert hub.requests == []


def gguf_repo():
    names = ["m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "mmproj-m-F16.gguf"]
    names += [f"Q8_0/m-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    files = {name: random_bytes(1000, seed) for seed, name in enumerate(names)}
    return Repo(files={"README.md": b"", **files}, lfs=set(names))


def test_a_gguf_is_chosen_by_its_quantisation(hub, pull, cache):
    hub.repos["org/m-GGUF"] = gguf_repo()
    path = pull("org/m-GGUF:q4_k_m")
    assert path.name == "m-Q4_K_M.gguf"
    assert path.read_bytes() == hub.repos["org/m-GGUF"].files["m-Q4_K_M.gguf"]
    assert files_under(path.parent) == {"m-Q4_K_M.gguf"}


def test_a_split_gguf_comes_whole(hub, pull, environment):
    hub.repos["org/m-GGUF"] = gguf_repo()
    path = pull("org/m-GGUF:Q8_0")
    assert path.name == "m-Q8_0-00001-of-00003.gguf"
    for i in (1, 2, 3):
        name = f"Q8_0/m-Q8_0-0000{i}-of-00003.gguf"
        assert (path.parents[1] / name).read_bytes() == hub.repos["org/m-GGUF"].files[name]
    environment["HF_HUB_OFFLINE"] = "1"
    assert pull("org/m-GGUF:Q8_0") == path


def test_an_ambiguous_or_missing_gguf_lists_what_there_is(hub, pull):
    hub.repos["org/m-GGUF"] = gguf_repo()
    for name in ("org/m-GGUF", "org/m-GGUF:Q4_K", "org/m-GGUF:IQ1_S"):
        error = pull.fails(NOT_FOUND, name)
        assert "m-Q4_K_M.gguf" in error and "mmproj" not in error
    assert "no GGUF file" in pull.fails(NOT_FOUND, "org/model:Q4_K_M")
    assert hub.sent_bodies() == []


def test_the_shards_of_the_index_are_fetched(hub, pull):
    shards = {f"model-0000{i}-of-00002.safetensors": random_bytes(5000, i) for i in (1, 2)}
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    files = {"config.json": b"{}", "model.safetensors.index.json": json.dumps(index).encode(), **shards}
    files["model-00001-of-00009.safetensors"] = b"left over"
    hub.repos["org/big"] = Repo(files=files, lfs=set(shards))
    path = pull("org/big")
    assert files_under(path) == {"config.json", "model.safetensors.index.json", *shards}


def test_a_repository_of_pickles_is_refused(hub, pull):
    hub.repos["org/old"] = Repo(files={"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    assert "pytorch_model.bin" in pull.fails(UNSUPPORTED, "org/old")
    assert hub.sent_bodies() == []


@pytest.mark.parametrize("source", ["huggingface", "modelscope"])
@pytest.mark.parametrize(
    "name", ["../evil.jinja", "/tmp/evil.jinja", "a/../../evil.jinja", "a//evil.jinja", "./evil.jinja", "a\u001b[2J.jinja", "..", ""]
)
def test_file_names_that_leave_the_folder_are_refused(hub, pull, tmp_path, name, source):
    repo = hub.repos["org/model"]
    repo.files[name] = b"evil"
    error = pull.fails(BAD_FILE, "--source", source, "org/model")
    assert "\x1b" not in error
    assert hub.sent_bodies() == []
    assert not list(tmp_path.rglob("*evil*"))


def test_etags_and_commits_that_are_no_names_are_refused(hub, pull):
    hub.repos["org/model"].commit = "../../../../evil"
    pull.fails(BAD_FILE, "org/model")
    hub.repos["org/model"] = safetensors_repo()
    hub.repos["org/model"].etag = lambda name: "../../evil"
    assert "ETag" in pull.fails(NETWORK, "org/model")


def pull_from_three_processes(hub, pull, *args):
    """While the first is in the middle of the weights, two more come and wait. Their paths."""
    gate = hub.faults.gate["model.safetensors"] = threading.Event()
    processes = [pull.start(*args)]
    wait_until(lambda: any(r.server == "storage" for r in hub.requests))
    processes += [pull.start(*args) for _ in range(2)]
    for process in processes[1:]:
        assert any("waiting for another process" in line for line in process.stderr)
    gate.set()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    return {Path(out.strip()) for out, _ in outputs}


@pytest.mark.parametrize("source", ["huggingface", "modelscope"])
def test_processes_share_one_download(hub, pull, source):
    (path,) = pull_from_three_processes(hub, pull, "--source", source, "org/model")
    assert (path / "model.safetensors").read_bytes() == hub.repos["org/model"].files["model.safetensors"]
    assert len([r for r in hub.requests if r.server == "storage"]) == 1


def test_too_little_disk_space_is_said_before_the_download(hub, pull):
    hub.faults.linked_size["model.safetensors"] = 10**17
    error = pull.fails(RESOURCE, "org/model")
    assert "100 PB" in error and "HF_HUB_CACHE" in error
    assert not any(r.server == "storage" for r in hub.requests)


def test_a_full_disk_keeps_what_came_for_the_next_run(hub, pull, cache):
    def limit_file_size():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    error = pull.fails(RESOURCE, "org/model", preexec_fn=limit_file_size)
    assert "no room on disk" in error
    path = pull("org/model")
    assert (path / "model.safetensors").read_bytes() == hub.repos["org/model"].files["model.safetensors"]
    assert hub.requests[-1].headers["range"] == "bytes=100000-"


def test_a_cache_that_cannot_be_written_is_a_clear_error(pull, tmp_path):
    (tmp_path / "hf").write_text("a file where the folder should be")
    assert "cannot make this folder" in pull.fails(RESOURCE, "org/model")


def test_a_local_path_that_is_not_there_never_reaches_the_hub(hub, pull, tmp_path):
    for name in ("./org/model", str(tmp_path / "x"), "x.gguf", "models/x.gguf", "~/x", "a/b/c"):
        assert "no file or folder" in pull.fails(NOT_FOUND, name)
    assert hub.requests == []


# The Python client, offline, in a process of its own: it reads its environment when imported.
READ_BACK = """
import sys
from huggingface_hub import snapshot_download, hf_hub_download, scan_cache_dir
print(snapshot_download("org/model"))
print(hf_hub_download("org/model", "model.safetensors"))
info = scan_cache_dir()
assert not info.warnings, info.warnings
repo = next(iter(info.repos))
assert repo.repo_id == "org/model" and repo.nb_files == int(sys.argv[1]), repo
"""


def python(code, *args, env):
    run = subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_python_client_reads_our_cache_offline(hub, pull, environment):
    path = pull("org/model")
    hub.requests.clear()
    snapshot, weights = python(READ_BACK, str(len(WANTED)), env={**environment, "HF_HUB_OFFLINE": "1"})
    assert Path(snapshot) == path and Path(weights) == path / "model.safetensors"
    assert hub.requests == []


def test_the_python_client_downloads_nothing_that_we_have(hub, pull, environment):
    path = pull("org/model")
    hub.requests.clear()
    (snapshot,) = python(
        'from huggingface_hub import snapshot_download\nprint(snapshot_download("org/model"))', env=environment
    )
    assert Path(snapshot) == path
    fetched = {r.path.split("/")[-1].split("?")[0] for r in hub.sent_bodies()}
    assert fetched == {".gitattributes", "README.md", "consolidated.safetensors", "pytorch_model.bin"}


def test_we_use_a_cache_of_the_python_client_without_a_download(hub, pull, environment):
    (snapshot,) = python(
        'from huggingface_hub import snapshot_download\nprint(snapshot_download("org/model"))', env=environment
    )
    hub.requests.clear()
    assert pull("org/model") == Path(snapshot)
    assert [r.path for r in hub.requests] == ["/api/models/org/model/revision/main"]
    environment["HF_HUB_OFFLINE"] = "1"
    assert pull("org/model") == Path(snapshot)


def scope_pull(pull, name="org/model"):
    return pull("--source", "modelscope", name)


def test_model_scope_fills_its_own_cache(hub, pull, environment, tmp_path):
    path = scope_pull(pull)
    assert path == tmp_path / ".cache/modelscope/models/org--model/snapshots/master"
    assert files_under(path) == WANTED
    for name in WANTED:
        assert (path / name).read_bytes() == hub.repos["org/model"].files[name]
    hub.requests.clear()
    assert scope_pull(pull) == path
    assert [r.path for r in hub.requests] == ["/api/v1/models/org/model/repo/files?Revision=master&Recursive=true"]
    environment["HF_HUB_OFFLINE"] = "1"
    assert scope_pull(pull) == path


def test_model_scope_updates_what_changed(hub, pull):
    path = scope_pull(pull)
    hub.repos["org/model"].files["config.json"] = b'{"model_type": "LLAMA"}'  # of the same size
    hub.requests.clear()
    scope_pull(pull)
    assert (path / "config.json").read_bytes() == b'{"model_type": "LLAMA"}'
    assert len(hub.requests) == 2


def test_model_scope_resumes_and_checks(hub, pull):
    hub.faults.cut_after["model.safetensors"] = [100_000]
    hub.faults.corrupt["config.json"] = 1
    error = pull.fails(BAD_FILE, "--source", "modelscope", "org/model")
    assert "config.json" in error
    path = scope_pull(pull)
    for name in WANTED:
        assert sha256((path / name).read_bytes()) == sha256(hub.repos["org/model"].files[name])
    assert any(r.headers.get("range") == "bytes=100000-" for r in hub.requests)


def test_model_scope_sends_its_token_to_the_endpoint_alone(hub, pull, environment):
    environment["MODELSCOPE_API_TOKEN"] = TOKEN
    scope_pull(pull)
    for request in hub.requests:
        here = request.server == "hub"
        assert request.headers.get("authorization") == (f"Bearer {TOKEN}" if here else None)
        assert request.headers.get("cookie") == (f"m_session_id={TOKEN}" if here else None)


def test_model_scope_uses_the_folder_of_an_older_client(hub, pull, environment, tmp_path):
    environment["MODELSCOPE_CACHE"] = str(tmp_path / "ms")
    repo = hub.repos["Org/Model-1.5"] = safetensors_repo()
    older = tmp_path / "ms/models/Org/Model-1___5"
    for name in WANTED:
        (older / name).parent.mkdir(parents=True, exist_ok=True)
        (older / name).write_bytes(repo.files[name])
    assert scope_pull(pull, "Org/Model-1.5") == older
    assert len(hub.requests) == 1


def test_model_scope_says_what_it_lacks(hub, pull):
    error = pull.fails(NOT_FOUND, "--source", "modelscope", "org/none")
    assert "org/none" in error and "model not found" in error
    pull.fails(NOT_FOUND, "--source", "modelscope", "org/model@v9")
    assert "invalid argument" in pull.fails(2, "--source", "elsewhere", "org/model")


def test_model_scope_gguf(hub, pull):
    hub.repos["org/m-GGUF"] = gguf_repo()
    assert scope_pull(pull, "org/m-GGUF:Q8_0").name == "m-Q8_0-00001-of-00003.gguf"
