"""Pieces of a self-contained HTML page. Text from strangers is always escaped here."""

import html
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no script, no network
JOINERS = "\u200c\u200d"  # without a width of their own; emoji and some scripts need them
LONGEST_NAME = 400  # characters of a name, even where it is given in full
MAX_CELLS = 60  # of a strip of ranks

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de;
  --mark: #1f5f86; --track: #e9eff3; --card: #f6f8fa; --yes: #1a7f37; --care: #8a5a00;
  --no: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #12161b; --ink: #e6e9ec; --soft: #a8b2bc;
  --rule: #39424c; --mark: #6cb6e3; --track: #222a32; --card: #1a2027; --yes: #56d364;
  --care: #e3b341; --no: #ff9a90; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .4rem; padding-top: .8rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.2rem 0 .3rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--mark); }
nav ul { list-style: none; margin: .6rem 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .2rem 1.1rem; }
bdi { display: inline-block; max-width: 100%; overflow: clip; overflow-wrap: anywhere;
  vertical-align: bottom; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .92rem;
  min-width: min(100%, 24rem); }
table.full { width: 100%; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; max-width: 46rem; }
th, td { text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: middle;
  font-weight: normal; border-bottom: 1px solid var(--rule); }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); vertical-align: bottom; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.picture { width: 60%; }
.pair .picture { width: 42%; } .pair .name { width: 33%; }
.name { min-width: 7rem; }
.heard { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
svg { display: block; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem;
  padding: .5rem 1rem; margin: .8rem 0; }
.card h3 { margin-top: .4rem; }
.pair { display: grid; gap: 0 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.pair > * { min-width: 0; }
.scroll { overflow-x: auto; } .scroll thead th { white-space: nowrap; }
.scroll .name { position: sticky; left: 0; background: var(--page); }
.answer { font-weight: bold; border: 2px solid; border-radius: .4rem; padding: .05rem .5rem; }
.yes { color: var(--yes); } .care { color: var(--care); } .no { color: var(--no); }
pre { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem;
  padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
summary { cursor: pointer; color: var(--mark); margin: .6rem 0; }
.cell, .bar, .dot { fill: var(--mark); }
.track { fill: var(--track); }
.span { stroke: var(--ink); stroke-width: 2; }
.mean { fill: var(--ink); }
.error { stroke: var(--mark); stroke-width: 1.5; opacity: .7; }
.frame { fill: none; stroke: var(--rule); }
.ideal { stroke: var(--soft); stroke-dasharray: 4 4; }
.axis { fill: var(--soft); font-size: 12px; }
@media (max-width: 34rem) { .spare { display: none; } th, td { padding-right: .5rem; }
  .picture, .pair .picture { width: 45%; } table { font-size: .87rem; } }
@media print { :root { color-scheme: light; --page: #fff; --ink: #000; --soft: #444; --rule: #bbb;
  --mark: #1f5f86; --track: #e9eff3; --card: #fff; --yes: #1a7f37; --care: #8a5a00;
  --no: #b3261e; }
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact; }
  nav { display: none; } h2, h3, caption { break-after: avoid; }
  tr, .card, svg, table:not(.full) { break-inside: avoid; } }
"""


class Html(str):
    """Text that is HTML already; any other text is escaped by :func:`tag`."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element; `class_` stands for class, `aria_label` for aria-label.

    >>> tag("p", "1 < 2", tag("b", "really"), class_='a"b')
    '<p class="a&quot;b">1 &lt; 2<b>really</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[object], between: str = "") -> Html:
    """The children one after the other; what is not HTML is escaped."""
    return Html(html.escape(between).join(map(_escaped, children)))


def _escaped(child: object) -> str:
    return child if isinstance(child, Html) else html.escape(str(child))


def plain(text: object, most: int = LONGEST_NAME) -> str:
    """Text from a stranger on one line: no control characters, no marks of direction, not long.

    >>> plain("a\\nb\\u202ec"), plain("strawberry", 6)
    ('a bc', 'straw…')
    """
    cut = str(text)[: LONGEST_NAME + 1]
    words = " ".join("".join(map(_seen, cut)).split())
    if len(words) > most:
        words = words[: most - 1].rstrip() + "…"
    return words or "(no name)"


def _seen(character: str) -> str:
    """What is shown of a character."""
    kind = unicodedata.category(character)
    if kind in ("Cc", "Zl", "Zp"):  # controls, ends of lines
        return " "
    if kind == "Cs":  # half a character, which no file can hold
        return "\ufffd"
    return "" if kind == "Cf" and character not in JOINERS else character


def name(text: object, most: int = 32) -> Html:
    """A name; if it is cut short, it is in full in its title."""
    short, full = plain(text, most), plain(text)
    return tag("bdi", short, title=None if short == full else full)


def percent(share: float) -> str:
    """A share in per cent: with a decimal if it is small, and never rounded to all or nothing.

    >>> percent(0.256), percent(0.0123), percent(0.9999)
    ('26\\xa0%', '1.2\\xa0%', 'over 99\\xa0%')
    """
    if 0 < share < 0.0005:
        return "under 0.1\u00a0%"
    if 0.995 <= share < 1 - 1e-9:
        return "over 99\u00a0%"
    return f"{100 * share:.{1 if 0 < share < 0.0995 else 0}f}\u00a0%"


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: object,
    *,
    kinds: Sequence[str],
    named_by: int = 0,
    quiet: bool = False,
) -> Html:
    """A table; `kinds` are the classes of its columns, and column `named_by` names the rows.

    The head of a quiet one is read aloud only.
    """
    full = "full" if any("picture" in kind for kind in kinds) else None
    titles = [
        tag("th", cell, scope="col", class_=kind or None)
        for cell, kind in zip(head, kinds, strict=True)
    ]
    body = [tag("tr", *_cells(row, kinds, named_by)) for row in rows]
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *titles), class_="heard" if quiet else None),
        tag("tbody", join(body, "\n")),
        class_=full,
    )


def _cells(row: Sequence[object], kinds: Sequence[str], named_by: int) -> list[Html]:
    return [
        tag("th", cell, scope="row", class_=kind or None)
        if place == named_by
        else tag("td", cell, class_=kind or None)
        for place, (cell, kind) in enumerate(zip(row, kinds, strict=True))
    ]


def bar(share: float, label: str, low: float | None = None, high: float | None = None) -> Html:
    """A bar as long as a share of the width, with an interval if there is one."""
    parts = [_rect(0, 1, 3, 12, "track"), _rect(0, share, 3, 12, "bar")]
    if low is not None and high is not None:
        parts.append(_span(low, high, 9))
    return _picture(parts, 18, label)


def strip(
    chances: NDArray[np.float64],
    strongest: float,
    interval: tuple[float, float],
    mean: float,
    label: str,
) -> Html:
    """Cells, the stronger the likelier; under them an interval and a mean, as shares of the width.

    ``chances[cell]`` is a probability; `strongest` that of the strongest colour.
    """
    parts = [_rect(0, 1, 1, 13, "track")]
    width = 1 / len(chances)
    for cell in np.flatnonzero(chances >= 0.002 * strongest):
        strength = f"{(chances[cell] / strongest) ** 0.5:.2f}"  # so that small chances are seen
        parts.append(_rect(cell * width, width, 1, 13, "cell", opacity=strength))
    parts.append(_span(*interval, 18))
    parts.append(tag("circle", cx=_place(mean), cy=18, r=3, class_="mean"))
    return _picture(parts, 22, label)


def in_cells(probabilities: NDArray[np.float64], last: int) -> tuple[NDArray[np.float64], int]:
    """``chances[item, cell]`` of the ranks 1 to `last`, at most `MAX_CELLS` cells, and the ranks
    of a cell; the last cell may be short.

    >>> in_cells(np.array([[0.5, 0.3, 0.2]]), 3)
    (array([[0.5, 0.3, 0.2]]), 1)
    """
    size = -(-last // MAX_CELLS)
    starts = np.arange(0, last, size)
    return np.add.reduceat(probabilities[:, :last], starts, axis=1), size


def rank_axis(last: int, width: int) -> Html:
    """The numbers over strips of `width` ranks, of which those up to `last` are there."""
    if last <= 10:
        marks = [(rank, (rank - 0.5) / width, "middle") for rank in range(1, last + 1)]
    else:
        middle = round(last / 2)
        marks = [(1, 0.0, "start"), (middle, (middle - 0.5) / width, "middle"), (last, 1.0, "end")]
    texts = [
        tag("text", rank, x=_place(x), y=12, text_anchor=anchor, class_="axis")
        for rank, x, anchor in marks
    ]
    return _picture(texts, 15, None)


def scatter(points: Sequence[tuple[float, float, float, float]], label: str) -> Html:
    """Stated against observed: points (stated, observed, error, weight) and the diagonal."""
    reach = max(max(x, y) for x, y, _, _ in points)
    top = next((t for t in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if reach <= 0.95 * t), 1.0)
    heaviest = max(weight for *_, weight in points)

    def at(x: float, y: float) -> tuple[float, float]:
        return 46 + 264 * x / top, 274 - 264 * min(max(y, 0.0), top) / top

    parts = [tag("rect", x=46, y=10, width=264, height=264, class_="frame")]
    parts.append(_line(at(0, 0), at(top, top), "ideal"))
    for share in (0.0, 0.5, 1.0):
        x, y = at(share * top, share * top)
        words = percent(share * top)
        parts.append(tag("text", words, x=40, y=f"{y + 4:.1f}", text_anchor="end", class_="axis"))
        anchor = "end" if share == 1 else "middle"
        parts.append(tag("text", words, x=f"{x:.1f}", y=290, text_anchor=anchor, class_="axis"))
    for x, y, error, weight in points:
        parts.append(_line(at(x, y - error), at(x, y + error), "error"))
        left, height = at(x, y)
        size = f"{max(2.5, 10 * (weight / heaviest) ** 0.5):.1f}"
        parts.append(tag("circle", cx=f"{left:.1f}", cy=f"{height:.1f}", r=size, class_="dot"))
    parts.append(tag("text", "stated chance", x=178, y=308, text_anchor="middle", class_="axis"))
    look = "width:100%;max-width:26rem"
    return tag("svg", *parts, viewBox="0 0 320 314", role="img", aria_label=label, style=look)


def page(title: str, body: Html) -> str:
    """The whole page."""
    head = (
        f'<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f"{tag('title', title)}\n<style>{STYLE}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n'
        "</body>\n</html>\n"
    )


def _picture(parts: Iterable[Html], height: int, label: str | None) -> Html:
    """A picture as wide as its column; `label` says it in words, None hides it from readers."""
    role = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return tag("svg", *parts, width="100%", height=height, **role)


def _rect(x: float, width: float, y: int, height: int, kind: str, **more: str) -> Html:
    place = {"x": _place(x), "width": _place(width)}
    return tag("rect", **place, y=y, height=height, class_=kind, **more)


def _span(low: float, high: float, y: int) -> Html:
    return tag("line", x1=_place(low), x2=_place(high), y1=y, y2=y, class_="span")


def _line(start: tuple[float, float], end: tuple[float, float], kind: str) -> Html:
    (x1, y1), (x2, y2) = start, end
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return tag("line", **{key: f"{value:.1f}" for key, value in ends.items()}, class_=kind)


def _place(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"
