"""The pages of docs/: all are in the site's table of contents, their links have targets, and the API page names what
the package has. `tox -e docs` builds the site and checks the links of the result (tests/site.py)."""

from __future__ import annotations

import re
from pathlib import Path

import orias
from tests.site import broken

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_every_page_is_in_the_table_of_contents() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n", 1)[1]
    listed = re.findall(r"[\w-]+\.md", nav)
    assert sorted(listed) == sorted(p.name for p in DOCS.glob("*.md"))


def _anchors(path: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", h.lower()).strip()) for h in heads}


def test_links_lead_somewhere() -> None:
    """Links of README and of docs, also to places within a page."""
    lost = []
    for path in [*ROOT.glob("*.md"), *DOCS.glob("*.md")]:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            name, _, place = link.partition("#")
            if "://" in link:
                continue
            target = path.parent / name if name else path
            if not target.exists() or (place and target.suffix == ".md" and place not in _anchors(target)):
                lost.append(f"{path.name}: {link}")
    assert not lost


def test_the_api_page_names_all_that_the_package_has() -> None:
    text = (DOCS / "api.md").read_text()
    assert set(orias.__all__) <= set(re.findall(r"\w+", text))


def test_the_checker_of_links_finds_them(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">1</a><a href="b.html#y">2</a><a href="c.html">3</a><a href="//o">'
    )
    (tmp_path / "b.html").write_text('<p id="x"><a href="a.html"></a>')
    assert broken(tmp_path) == ["a.html: b.html#y", "a.html: c.html"]
