"""`orias K.ptx --report NAME.html`: the page of a kernel, as a file and in a browser (Chromium through Playwright; if
either is missing, these tests are skipped)."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.__main__ import _run as orias
from stages.show.show import show
from tests.orchestrator.test_seen import TWO

PTX = Path(__file__).parents[1] / "kernels" / "ptx" / "sm_90"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LARGE = 5000


def page_of(path: Path) -> dict[str, Any]:
    """The data of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "matmul.html"
    words = [str(PTX / "matmul.ptx"), "-arch", "sm_90", "-o", str(folder / "m.cubin")]
    assert orias([*words, "--report", str(path)]) == 0
    plain = (folder / "m.cubin").read_bytes()
    assert orias(words) == 0 and (folder / "m.cubin").read_bytes() == plain
    return path


def test_the_page_has_source_sass_and_passes(matmul: Path) -> None:
    """The SASS is the disassembler's, lines of PTX are the source's, all passes are there, and nothing is fetched."""
    import orias as package

    text, data = matmul.read_text(), page_of(matmul)
    assert not re.search(r"""(?:src|href)\s*=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)""", text)
    listing = package.disassemble(matmul.parent / "m.cubin")
    sass = [re.sub(r"\s*;$", "", m) for m in re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*;)", listing)]
    rows = data["code"]
    assert [re.sub(r"\s+", " ", r[1]) for r in rows] == [re.sub(r"\s+", " ", s) for s in sass[: len(rows)]]
    source = (PTX / "matmul.ptx").read_text().split("\n")
    assert [re.sub(r"<[^>]+>", "", x).replace("&lt;", "<").replace("&gt;", ">") for x in data["ptx"]] == source
    for _, sass_text, line, *_ in rows:
        for mnemonic, word in (("STG", "st.global"), ("BAR", "bar"), ("LDS", "ld.shared"), ("BRA", "bra")):
            if re.match(rf"(@!?U?P\d )?{mnemonic}\b", sass_text):
                assert word in source[line - 1], sass_text
    assert sum("waits for SB" in r[4] for r in rows) > 3 and sum("stall" in r[4] for r in rows) > 3
    known = {(s, p.name) for s, ps in package.passes().items() for p in ps}
    assert known <= {(p["stage"], p["name"]) for p in data["passes"]}
    kernel = package.compile("\n".join(source), arch="sm_90").kernels["matmul"]
    assert {r[0]: r[1] for r in data["resources"]}["registers a thread"] == kernel.registers
    assert any("registers" in o[4] for o in data["occupancy"]) and data["remarks"]
    for p in data["passes"]:  # a pass's change leads from the text before it to the text after it
        if p["state"] > 0:
            before, after = data["states"][p["state"] - 1 : p["state"] + 1]
            assert sum(d[1] for d in p["diff"]) == len(before) and sum(d[2] for d in p["diff"]) == len(after)


def test_a_page_for_each_kernel(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(TWO)
    words = [str(tmp_path / "k.ptx"), "-arch", "sm_90", "-o", str(tmp_path / "k.cubin")]
    assert orias([*words, "--report", str(tmp_path / "r.html")]) == 0
    names = re.findall(r'href="([^"]+)"', (tmp_path / "r.html").read_text())
    assert [page_of(tmp_path / n)["name"] for n in names] == ["k1", "k2"]


@pytest.fixture(scope="module")
def streams(matmul: Path) -> list[str]:
    """The saved streams of the same kernel, one per stage."""
    folder = matmul.parent / "T"
    words = [str(PTX / "matmul.ptx"), "-arch", "sm_90", "-o", str(matmul.parent / "n.cubin")]
    assert orias([*words, "--save-temps", str(folder)]) == 0
    return [str(p) for p in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def view(streams: list[str]) -> Path:
    """What orias-show makes of them."""
    path = Path(streams[0]).parent.parent / "view.html"
    path.write_text("".join(show(streams, "html", "")))
    return path


def test_saved_streams_have_the_page_of_the_report(view: Path, matmul: Path, streams: list[str]) -> None:
    """Blocks, edges, control words and pressure are the report's; each stream is a step; PTX is at its lines."""
    data, report = page_of(view), page_of(matmul)
    count = len(report["code"])
    assert [r[2:4] for r in data["code"]] == [r[2:4] for r in report["code"][: len(data["code"])]] and count > 50
    real = [b for b in report["blocks"] if b[0] < len(data["code"])]  # without the loop after the last instruction
    assert [b[:2] for b in data["blocks"]] == [[a, min(b, len(data["code"]))] for a, b, _ in real]
    assert data["edges"] == [w for w in report["edges"] if w[0] < len(real)]
    assert [r[5] for r in data["code"]] == [r[5] for r in report["code"][: len(data["code"])]]
    assert [p["stage"] for p in data["passes"]] == ["lower", "optimize", "regalloc", "schedule", "encode"]
    assert all(p["state"] == n for n, p in enumerate(data["passes"]))
    source = (PTX / "matmul.ptx").read_text().split("\n")
    for text, line in zip(data["ptx"], source, strict=False):
        plain = re.sub(r"<[^>]+>", "", text)
        assert not plain or re.sub(r"^(@!?%p\d+ )", "", plain).split(" ")[0].rstrip(";") in line, (plain, line)


def test_a_graph_names_its_ways(streams: list[str], matmul: Path) -> None:
    """DOT: every edge has a label and the page's colour; lines of PTX precede their instructions."""
    made = "".join(show([streams[0], streams[4]], "dot", ""))
    edges = re.findall(r"f0_(\d+) -> f0_(\d+) \[label=\"(.*?)\"", made)
    known = [w for w in page_of(matmul)["edges"] if w[0] < max(int(a) for a, _, _ in edges) + 1]
    assert sorted((int(a), int(b), int(how == "taken")) for a, b, how in edges) == sorted(map(tuple, known))
    assert "cluster_legend" in made and re.search(r"// \d+: ld\.global\.\S+ .*?\\l  @?.*?LDG", made)
    assert "//" not in "".join(show([streams[4]], "dot", "")).split("legend", 1)[0].replace('"//', "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH")
    with api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def opened(browser: Any, path: Path, width: int, **options: str) -> tuple[Any, list[str]]:
    """The page in a window of this width, with its errors and fetches."""
    page = browser.new_page(viewport={"width": width, "height": 900}, **options)
    wrong: list[str] = []
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: wrong.append(r.url) if not r.url.startswith("file:") else None)
    page.goto(path.as_uri(), timeout=120_000)
    page.wait_for_selector("#graph[data-done]", timeout=120_000)
    return page, wrong


@pytest.mark.parametrize("width", [1280, 1920])
def test_the_page_in_a_browser(browser: Any, matmul: Path, width: int, tmp_path: Path) -> None:
    """PTX, SASS, passes, graph and pressure are visible without horizontal scrolling; mouse and keys work; no error."""
    page, wrong = opened(browser, matmul, width, color_scheme="dark")
    data = page_of(matmul)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for panel in ("p-ptx", "p-sass", "p-graph", "p-passes", "p-pressure", "p-occupancy", "p-remarks"):
        box = page.locator(f"#{panel}").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] > 100, panel
    assert page.locator("#sass .r").count() == len(data["code"])
    assert page.locator("#graph .node").count() == len(data["blocks"])
    assert page.locator("#graph path.taken, #graph path.through").count() == len(data["edges"])
    assert page.locator("#pressure path").count() >= 3
    last = len(data["blocks"]) - 1
    page.locator(f"#graph .node[data-block='{last}']").click()
    assert page.locator("#sass .cur").get_attribute("data-at") == str(data["blocks"][last][0])
    line = data["code"][data["blocks"][last][0]][2]
    assert page.locator("#ptx .hit").get_attribute("data-line") == str(line)
    page.keyboard.press("2")
    page.keyboard.press("ArrowDown")
    assert page.locator("#sass .cur").get_attribute("data-at") == str(data["blocks"][last][0] + 1)
    before = page.locator("#passinfo").inner_text()
    page.keyboard.press("n")
    assert (
        page.locator("#passinfo").inner_text() != before and page.locator("#diff .chg, #diff .add, #diff .del").count()
    )
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.keyboard.press("t")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark, light) == ("rgb(22, 24, 27)", "rgb(255, 255, 255)")
    page.screenshot(path=str(tmp_path / f"matmul-{width}.png"), full_page=True)
    page.close()
    assert wrong == []


def test_the_page_of_saved_streams_in_a_browser(browser: Any, view: Path) -> None:
    page, wrong = opened(browser, view, 1280)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#graph .node").count() == len(page_of(view)["blocks"])
    assert not page.locator("#p-occupancy").is_visible()
    page.keyboard.press("n")
    assert page.locator("#diff .chg, #diff .add, #diff .del").count()
    page.close()
    assert wrong == []


def test_a_large_kernel_in_a_browser(browser: Any, matmul: Path, tmp_path: Path) -> None:
    """5,000 instructions in 300 blocks: copies of matmul's."""
    data, text = page_of(matmul), matmul.read_text()
    code, blocks, edges = data["code"], data["blocks"], data["edges"]
    times = -(-LARGE // len(code))
    data["code"] = [[r[0] + 16 * len(code) * k, *r[1:]] for k in range(times) for r in code]
    n, size = len(blocks), len(code)
    data["blocks"] = [[a + size * k, b + size * k, name] for k in range(times) for a, b, name in blocks]
    data["edges"] = [[a + n * k, b + n * k, t] for k in range(times) for a, b, t in edges]
    data["states"] = [s * times for s in data["states"]]
    for p in data["passes"]:
        p["diff"] *= times
    body = json.dumps(data).replace("</", "<\\/")
    path = tmp_path / "large.html"
    whole = re.sub(r'(id="data">).*?(</script>)', lambda m: m[1] + body + m[2], text, count=1, flags=re.S)
    path.write_text(whole)
    page, wrong = opened(browser, path, 1280)
    assert page.locator("#sass .r").count() >= LARGE and page.locator("#graph .node").count() == n * times
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("n")
    assert page.locator("#diff .two").count() > 1000
    page.close()
    assert wrong == []
