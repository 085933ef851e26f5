"""What results look like: tables as text, and in a notebook tables, bars and a picture, with every
name escaped.

Colours are those of the notebook, light or dark; only the marks have one of their own.
"""

import html
from collections.abc import Iterable, Mapping, Sequence

MARK = "#2f7fb3"  # of bars and dots, on light and on dark
LONGEST = 80  # characters of a name: a line of a terminal
N_SHOWN = 5  # rows of a table in a notebook, beside the code: users, items, clusters
N_PRINTED = 20  # rows of a table as text: a terminal has 24 lines
LEFT, TOP, SIDE = 46, 10, 264  # the square of `calibration`, in units of its drawing
Points = Sequence[tuple[float, float, float, float]]  # stated, observed, error, count


class Markup(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()

    def __html__(self) -> str:
        """For templates."""
        return str(self)


def cell(value: object) -> str:
    """Anything as the content of a cell: text escaped and not too long, numbers short.

    >>> cell("<b>"), cell(0.12345), cell(12345), cell(Markup("<b>x</b>"))
    ('<bdi>&lt;b&gt;</bdi>', '0.123', '12,345', '<b>x</b>')
    """
    if isinstance(value, Markup):
        return value
    return short(value) if is_number(value) else f"<bdi>{html.escape(short(value))}</bdi>"


def is_number(value: object) -> bool:
    """Does it stand on the right of its column?"""
    return isinstance(value, int | float) and not isinstance(value, bool)


def short(value: object) -> str:
    """Anything as text that is not too long; numbers with at most three digits after the point."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    text = str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def plain(rows: Sequence[Mapping[str, object]], n_more: int = 0) -> str:
    """Rows as text, under the names of their columns; `n_more` rows are not among them.

    >>> print(plain([{"item": "tea", "rank": 1, "mean": 1.3012499999999818}], 2))
    item  rank  mean
    tea      1  1.30
    ... and 2 more
    """
    columns = []
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        on_right = all(map(is_number, values))
        if on_right and any(isinstance(value, float) for value in values):
            most = max(abs(float(str(value))) for value in values)
            digits = 3 - sum(most >= end for end in (1, 10, 1000))
            cells = [name, *(f"{value:.{digits}f}" for value in values)]
        else:
            cells = [name, *(short(" ".join(str(value).split())) for value in values)]
        width = max(map(len, cells))
        columns.append([text.rjust(width) if on_right else text.ljust(width) for text in cells])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([*lines, *([f"... and {n_more:,} more"] if n_more else [])])


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; numbers stand on the right.

    >>> table(["item", "rank"], [["tea", 1]]).count("<td")
    2
    """
    titles = "".join(f'<th style="text-align:left">{html.escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _td(value: object) -> str:
    side = "right" if is_number(value) else "left"
    return f'<td style="text-align:{side}">{cell(value)}</td>'


def card(title: str, words: str, *parts: str) -> str:
    """A result: what it is, in bold, what there is to say of it, and tables."""
    heading = f"<b>{html.escape(title)}</b> {html.escape(words)}"
    return f"<div>{heading}{''.join(parts)}</div>"


def bar(share: float, label: str) -> Markup:
    """A bar on a scale from 0 to 1, and what it says."""
    width = 100 * min(max(share, 0.0), 1.0)
    return _strip(f'<rect width="{width:.1f}" height="12" fill="{MARK}"/>', html.escape(label))


def interval(low: float, high: float, mean: float, end: float) -> Markup:
    """A line from rank `low` to rank `high` of 1 to `end`, and a dot at the mean."""
    left, right, middle = (100 * (at - 0.5) / end for at in (low - 0.5, high + 0.5, mean))
    marks = (
        f'<rect x="{left:.1f}" width="{right - left:.1f}" y="4" height="4" fill="{MARK}" '
        f'opacity="0.6"/><circle cx="{middle:.1f}" cy="6" r="4" fill="{MARK}"/>'
    )
    return _strip(marks, f"{low:g}" if low == high else f"{low:g} to {high:g}")


def _strip(marks: str, label: str) -> Markup:
    """Marks in a line of text, before what they say."""
    return Markup(
        f'<svg width="104" height="12" role="img" aria-label="{label}" '
        'style="vertical-align:middle">'
        f'<rect width="100" height="12" fill="currentColor" opacity="0.12"/>{marks}</svg> {label}'
    )


def calibration(points: Points) -> dict[str, list[tuple[float, ...]]]:
    """Stated against observed: points (stated, observed, error, count), in units of the drawing.

    `ticks` are (share, x, y), `dots` are (x, y, low, high, radius).
    """
    reach = max(max(stated, observed) for stated, observed, _, _ in points)
    tops = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)  # round ends of the axes
    end = next((top for top in tops if reach <= 0.95 * top), 1.0)
    most = max(count for *_, count in points)

    def right(share: float) -> float:
        return LEFT + SIDE * share / end

    def up(share: float) -> float:
        return TOP + SIDE - SIDE * min(max(share, 0.0), end) / end

    dots: list[tuple[float, ...]] = [
        (
            right(stated),
            up(observed),
            up(observed - error),
            up(observed + error),
            max(2.5, 10 * (count / most) ** 0.5),  # area for number, but never too small to see
        )
        for stated, observed, error, count in points
    ]
    ticks: list[tuple[float, ...]] = [(at, right(at), up(at)) for at in (0.0, 0.5 * end, end)]
    return {"ticks": ticks, "dots": dots}


def reliability(points: Points, width: str = "18rem") -> Markup:
    """The picture of a calibration: a page may colour its classes in its own way."""
    drawn, text = calibration(points), 'class="axis" fill="currentColor" font-size="12"'
    parts = [
        f'<svg viewBox="0 0 320 318" role="img" style="width:100%;max-width:{width}" '
        'aria-label="Stated probability against the share observed">',
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" class="frame" fill="none" '
        'stroke="currentColor" stroke-opacity="0.3"/>',
        f'<line x1="{LEFT}" y1="{TOP + SIDE}" x2="{LEFT + SIDE}" y2="{TOP}" class="ideal" '
        'stroke="currentColor" stroke-opacity="0.6" stroke-dasharray="4 4"/>',
    ]
    for number, (share, x, y) in enumerate(drawn["ticks"]):
        words, anchor = f"{100 * share:g}\u00a0%", "end" if number == 2 else "middle"
        parts.append(f'<text x="40" y="{y + 4:.1f}" text-anchor="end" {text}>{words}</text>')
        parts.append(f'<text x="{x:.1f}" y="291" text-anchor="{anchor}" {text}>{words}</text>')
    for x, y, low, high, radius in drawn["dots"]:
        ends = f'x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"'
        parts.append(f'<line {ends} class="error" stroke="{MARK}" stroke-width="1.5"/>')
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="dot" fill="{MARK}"/>'
        )
    parts.append(f'<text x="178" y="311" text-anchor="middle" {text}>stated probability</text>')
    parts.append(f'<text x="54" y="27" {text}>share observed</text></svg>')
    return Markup("\n".join(parts))
