"""The cache of compiled code: the same bytes and messages, and only entries that are surely its own."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import cache as module
from orchestrator.cache import Cache, Unusable, digest
from orchestrator.options import read
from orchestrator.reuse import Reuse, written_from_cache

ROOT = Path(__file__).parents[2]
KEY = digest("a key")

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """.visible .entry {0}(.param .u64 p)
{{
  .reg .b64 %a; .reg .b32 %r;
  .pragma "nounroll";
  ld.param.u64 %a, [p];
  mov.u32 %r, {1};
  st.global.u32 [%a], %r;
  ret;
}}
"""


def _orias(args: list[str], cache: Path | None) -> tuple[int, str]:
    environment = os.environ | ({"ORIAS_CACHE": str(cache)} if cache is not None else {})
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "-arch", "sm_80", *args],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


def _entries(folder: Path) -> int:
    return sum(1 for f in folder.glob("*/*") if not f.name.startswith("."))


def test_one_changed_kernel(tmp_path: Path) -> None:
    """The second run takes the result; a change of one kernel, with all lines moved, compiles only that kernel; both
    give the result of a run without a cache."""
    cache, ptx = tmp_path / "c", tmp_path / "k.ptx"
    kernels = [KERNEL.format(f"k{i}", i + 100) for i in range(5)]
    ptx.write_text(HEAD + "".join(kernels))
    args = [str(ptx), "-o", str(tmp_path / "o"), "-warn-spills", "-maxrregcount", "20"]
    plain = _orias(args, None)
    data = (tmp_path / "o").read_bytes()
    assert plain[0] == 0 and "lower bound" in plain[1]
    for entries in (6, 6):
        (tmp_path / "o").unlink()
        assert _orias(args, cache) == plain
        assert (tmp_path / "o").read_bytes() == data and _entries(cache) == entries
    assert cache.stat().st_mode & 0o777 == 0o700
    kernels[1] = KERNEL.format("k1", 7)
    ptx.write_text(HEAD + "\n// moved\n" + "\n".join(kernels))
    assert _orias(args, cache) == plain
    assert _entries(cache) == 8
    changed = (tmp_path / "o").read_bytes()
    assert _orias(args, None) == plain and (tmp_path / "o").read_bytes() == changed != data


def test_a_kept_result_is_written_without_the_driver(tmp_path: Path) -> None:
    """Whatever else a command line asks for is the driver's work."""
    cache, ptx, out = tmp_path / "c", tmp_path / "k.ptx", tmp_path / "o"
    ptx.write_text(HEAD + KERNEL.format("k", 1))
    assert _orias([str(ptx), "-o", str(out)], cache) == (0, "")
    data = out.read_bytes()
    out.unlink()
    words = ["-arch", "sm_80", str(ptx), "-o", str(out), "--cache", str(cache)]
    for more in (["-O1"], ["--report", str(tmp_path / "r.html")], ["--save-temps", str(tmp_path)], ["-O3", "-O3"]):
        assert not written_from_cache(read([*words, *more])) and not out.exists()
    assert written_from_cache(read(words))
    assert out.read_bytes() == data
    ptx.write_text(HEAD + KERNEL.format("k", 2))
    assert not written_from_cache(read(words))


def test_only_success_is_kept(tmp_path: Path) -> None:
    cache, ptx = tmp_path / "c", tmp_path / "k.ptx"
    ptx.write_text(HEAD + KERNEL.format("k", 1).replace("ret;", "rot;"))
    plain = _orias([str(ptx), "-o", str(tmp_path / "o")], None)
    for _ in range(2):
        assert _orias([str(ptx), "-o", str(tmp_path / "o")], cache) == plain
    assert plain[0] == 255 and _entries(cache) == 0 and not (tmp_path / "o").exists()


def test_unusable_folder_is_bypassed(tmp_path: Path) -> None:
    cache, ptx = tmp_path / "c", tmp_path / "k.ptx"
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    ptx.write_text(HEAD + KERNEL.format("k", 1))
    code, said = _orias([str(ptx), "-o", str(tmp_path / "o")], cache)
    assert code == 0 and said == (
        f"ptxas warning : the cache '{cache}' is not used: it is open to others (expected mode 0700)\n"
    )
    assert not list(cache.iterdir())


def test_what_a_key_holds(tmp_path: Path) -> None:
    """Everything that changes the result changes the key; nothing else does."""
    reuse = Reuse(Cache(str(tmp_path / "c")))
    sources = [("k.ptx", b"text")]

    def key(*argv: str) -> bytes:
        return reuse.whole_key(read([*argv, "k.ptx"]), sources)

    base = key("-arch", "sm_90")
    assert base == key("-arch=sm_90", "-o", "x", "-j", "3", "--cache", "d")
    others = [key(), key("-arch", "sm_80")]
    others += [key("-arch", "sm_90", *o) for o in (["-O1"], ["-v"], ["-w"], ["-g"], ["-e", "k"], ["-e", "l"], ["-c"])]
    others += [reuse.whole_key(read(["-arch", "sm_90", "k.ptx"]), s) for s in ([("l.ptx", b"text")], sources * 2)]
    others.append(reuse.whole_key(read(["-arch", "sm_90", "k.ptx"]), [("k.ptx", b"texu")]))
    reuse.state = b"another state of the code"
    others.append(key("-arch", "sm_90"))
    assert len({base, *others}) == len(others) + 1


def test_code_state_follows_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ir_format", "orchestrator", "stages/deep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "stages/deep/a.py").write_text("1")
    monkeypatch.setattr(module, "_ROOT", str(tmp_path))
    before = module.code_state()
    assert before == module.code_state()
    (tmp_path / "stages/deep/a.py").write_text("2")
    assert module.code_state() != before


@pytest.mark.parametrize("kind", ("flipped", "truncated", "empty", "renamed", "planted", "writable", "linked", "fifo"))
def test_false_entries(tmp_path: Path, kind: str) -> None:
    """An entry that was altered, moved, or written by someone who does not know the folder's key is not used."""
    cache = Cache(str(tmp_path / "c"))
    cache.put(KEY, b"content" * 100)
    assert cache.get(KEY) == b"content" * 100
    path = Path(cache._path(KEY))
    data = path.read_bytes()
    if kind == "renamed":
        other = digest("another key")
        path.rename(cache._path(other))
        assert cache.get(other) is None and cache.get(KEY) is None
        return
    if kind == "planted":
        foreign = Cache(str(tmp_path / "d"))
        foreign.put(KEY, b"planted")
        data = Path(foreign._path(KEY)).read_bytes()
    for at in range(0, len(data), 37) if kind == "flipped" else (0,):
        path.unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "linked":
            (tmp_path / "real").write_bytes(data)
            path.symlink_to(tmp_path / "real")
        else:
            altered = {
                "flipped": data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :],
                "truncated": data[:-1],
                "empty": b"",
            }
            path.write_bytes(altered.get(kind, data))
            path.chmod(0o666 if kind == "writable" else 0o600)
        assert cache.get(KEY) is None
    cache.put(KEY, b"new")
    assert cache.get(KEY) == b"new"


def test_folders_that_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache(str(tmp_path / "c"))
    (tmp_path / "link").symlink_to(tmp_path / "c")
    (tmp_path / "file").write_text("")
    for name, why in (("link", "link"), ("file", "no folder"), ("file/c", "File exists")):
        with pytest.raises(Unusable, match=why):
            Cache(str(tmp_path / name))
    (tmp_path / "c/3").chmod(0o750)
    with pytest.raises(Unusable, match="open to others"):
        Cache(str(tmp_path / "c"))
    (tmp_path / "c/3").chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Unusable, match="another user"):
        Cache(str(tmp_path / "c"))


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(str(tmp_path / "c"))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) < 200:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:150])

    monkeypatch.setattr(os, "write", full)
    cache.put(KEY, bytes(1000))
    monkeypatch.undo()
    assert cache.get(KEY) is None and not [f for f in tmp_path.glob("c/*/*") if f.is_file()]


def test_bounded(tmp_path: Path) -> None:
    """The folder stays within its limit; the most recently used entries stay."""
    cache = Cache(str(tmp_path / "c"), 16 * 5000)
    keys = [digest(str(i)) for i in range(400)]
    for i, key in enumerate(keys):
        cache.put(key, bytes(1000))
        os.utime(cache._path(key), (i, i))
    kept = keys[3]
    assert cache.get(kept) is not None
    cache.put(digest("large"), bytes(6000))
    cache.trim()
    assert sum(f.stat().st_size for f in tmp_path.glob("c/?/*")) <= 16 * 5000
    assert cache.get(kept) is not None and cache.get(keys[0]) is None and cache.get(digest("large")) is None


def test_many_writers(tmp_path: Path) -> None:
    """Processes that create, fill and empty one folder at once: every content found is right."""
    keys = [digest(str(i)) for i in range(20)]
    children = []
    for seed in range(4):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                cache = Cache(str(tmp_path / "c"), 16 * 3000)
                for n in range(150):
                    i = (n * 7 + seed * 5) % len(keys)
                    got = cache.get(keys[i])
                    assert got in (None, bytes([i]) * 900)
                    cache.put(keys[i], bytes([i]) * 900)
                    if n % 10 == 0:
                        cache.trim()
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0, 0]
    cache = Cache(str(tmp_path / "c"))
    assert any(cache.get(k) for k in keys) and not list(tmp_path.glob("c/*/.*"))
