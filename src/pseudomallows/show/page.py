"""Pages from templates, with all text escaped. This module alone imports Jinja2."""

import re
import unicodedata

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "a report needs Jinja2: pip install 'pseudomallows[report]'", name=error.name
    ) from None

JOINERS = "\u200c\u200d"  # without a width of their own; emoji and some scripts need them
LONE_LETTER = re.compile(r"\b[a-z](?=-)")  # of "T-light"
LONGEST_NAME = 400  # characters of a name, even in full: more than the 300 that the service takes


def plain(text: object, most: int = LONGEST_NAME) -> str:
    """Text from a stranger on one line: no control characters, no marks of direction, not long.

    >>> plain("a\\nb\\u202ec"), plain("strawberry", 6)
    ('a bc', 'straw…')
    """
    cut = str(text)[: max(most, LONGEST_NAME) + 1]  # before the loop: a name may be huge
    words = " ".join("".join(map(_visible, cut)).split())
    if len(words) > most:
        whole = words[:most].rpartition(" ")[0]  # cut between words, if they are not huge
        words = (whole if len(whole) > most / 2 else words[: most - 1]).rstrip() + "…"
    return words or "(no name)"


def readable(text: object) -> str:
    """A name as people write it: capitals throughout become a sentence; other names stay.

    >>> readable("WHITE HANGING HEART T-LIGHT HOLDER"), readable("iPhone 4"), readable("USB")
    ('White hanging heart T-light holder', 'iPhone 4', 'USB')
    """
    name = str(text)[: LONGEST_NAME + 1]
    letters = [letter for letter in name if letter.isalpha()]
    is_code = len(letters) < 6
    if is_code or name != name.upper() or name == name.lower():
        return name
    small = LONE_LETTER.sub(lambda match: match[0].upper(), name.lower())
    first = next(place for place, letter in enumerate(small) if letter.isalpha())
    if small[first - 1 : first].isdigit():  # "3D", "50's"
        return small
    return small[:first] + small[first].upper() + small[first + 1 :]


def _visible(character: str) -> str:
    """What is shown of a character."""
    kind = unicodedata.category(character)
    if kind in ("Cc", "Zl", "Zp"):  # controls, ends of lines
        return " "
    if kind == "Cs":  # half a character, which no file can hold
        return "\ufffd"
    return "" if kind == "Cf" and character not in JOINERS else character


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


def whole(number: int) -> str:
    """A whole number with commas between thousands."""
    return f"{number:,}"


def across(share: float) -> str:
    """A place in a picture, as a share of its width; what lies outside goes to the edge."""
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


TEMPLATES = Environment(
    loader=PackageLoader("pseudomallows.show", "."),
    autoescape=True,
    undefined=StrictUndefined,  # a word that the template does not know is an error, not a gap
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {each.__name__: each for each in (plain, readable, percent, whole, across)}
TEMPLATES.policies["json.dumps_kwargs"] = {}  # keys in their order, not sorted


def render(template: str, **figures: object) -> str:
    """The text of a page from a template of this folder."""
    return TEMPLATES.get_template(template).render(**figures)
