"""Checks links of the built site: `python -m tests.site FOLDER` names each link without a target file or place."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The links of a page, and the places in it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if (tag, name) in (("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")) and value:
                self.links.append(value)


def broken(folder: Path) -> list[str]:
    """Broken links, as `page: link`. Links to other sites are not checked."""
    pages: dict[Path, _Page] = {}
    for path in sorted(folder.rglob("*.html")):
        page = pages[path.resolve()] = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    out = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if link.startswith("/"):
                target = (folder / unquote(parts.path).lstrip("/")).resolve()
            if target.is_dir():
                target /= "index.html"
            known = pages.get(target)
            lost = parts.fragment and known is not None and unquote(parts.fragment) not in known.places
            if not target.exists() or lost:
                out.append(f"{path.relative_to(folder.resolve())}: {link}")
    return out


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    found = broken(Path(sys.argv[1]))
    print("\n".join([*found, f"{len(found)} links lead nowhere"]))
    sys.exit(1 if found else 0)
