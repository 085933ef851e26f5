"""What the site needs beyond Markdown: formulas, the command reference, names in docstrings.

- ``$$ ... $$`` and ``\\( ... \\)`` become MathML, which browsers show without any script. Only the
  few TeX commands listed here are known; another one stops the build.
- ``<!-- commands -->`` becomes the reference of the command line, from its parser.
- ``::: pm.name`` stands for the full path of a public name, for mkdocstrings.
- The roles of docstrings, such as ``:func:`fit` ``, become links.
"""

import argparse
import html
import operator
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import griffe

import pseudomallows as pm
from pseudomallows.cli.parser import make_parser

LETTERS = {"alpha": "α", "rho": "ρ", "pi": "π", "ell": "ℓ"}
OPERATORS = {
    "sum": "∑", "prod": "∏", "le": "≤", "lt": "<", "ge": "≥", "ne": "≠", "in": "∈", "cdot": "·",
    "propto": "∝", "approx": "≈", "to": "→", "mid": "|", "dots": "…", "times": "×", "|": "‖",
}  # fmt: skip
PAIRS = {"(": ")", "[": "]", r"\{": r"\}"}
BARS = {"lvert": "prefix", "rvert": "postfix"}
NAMES = ("exp", "log", "min", "max")
SPACES = {",": 0.17, ";": 0.28, "quad": 1.0}
LIMITS = ("sum", "prod")
TOKEN = re.compile(r"\\text\{[^}]*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S")
FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Change a page before it becomes HTML; code blocks stay as they are."""
    parts = FENCE.split(markdown)
    parts[::2] = [_change(part) for part in parts[::2]]
    return "".join(parts).replace("<!-- commands -->", "".join(command_pages(make_parser())))


def _change(text: str) -> str:
    text = re.sub(r"\$\$(.+?)\$\$", lambda found: block_formula(found[1]), text, flags=re.DOTALL)
    text = re.sub(r"\\\((.+?)\\\)", lambda found: line_formula(found[1]), text, flags=re.DOTALL)
    return re.sub(r"^::: pm\.(\S+)$", lambda found: _full_path(found[1]), text, flags=re.MULTILINE)


def _full_path(name: str) -> str:
    if name.split(".")[0] == "plots":
        return f"::: pseudomallows.{name}"
    found = operator.attrgetter(name)(pm)
    return f"::: {found.__module__}.{found.__qualname__}"


# Formulas


def block_formula(tex: str) -> str:
    """A formula on a line of its own."""
    return f'<div class="formula">{formula(tex, display="block")}</div>'


def line_formula(tex: str) -> str:
    """A formula in a line; in a span, since Markdown ends the paragraph before a bare `math`."""
    return f"<span>{formula(tex)}</span>"


def formula(tex: str, display: str = "inline") -> str:
    r"""MathML of a small part of TeX.

    >>> formula(r"x_i^2")
    '<math display="inline"><mrow><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></mrow></math>'
    """
    tokens = iter(TOKEN.findall(tex))
    return f'<math display="{display}">{_row(tokens, display == "block")}</math>'


def _row(tokens: Iterator[str], display: bool, end: str = "}") -> str:
    """Everything up to the end or to the closing sign."""
    parts: list[str] = []
    pending: list[tuple[str, str]] = []  # signs and scripts of the last part

    def close() -> None:
        if pending:
            parts[-1] = _with_scripts(parts[-1], dict(pending), display)
            pending.clear()

    for token in tokens:
        if token == end:
            break
        if token in "_^":
            pending.append((token, _one(tokens, display)))
            continue
        close()
        parts.append(_atom(token, tokens, display))
    close()
    return f"<mrow>{''.join(parts)}</mrow>"


def _one(tokens: Iterator[str], display: bool) -> str:
    return _atom(next(tokens), tokens, display)


def _with_scripts(base: str, scripts: dict[str, str], display: bool) -> str:
    above = display and any(OPERATORS[name] in base for name in LIMITS)
    both, low, high = ("munderover", "munder", "mover") if above else ("msubsup", "msub", "msup")
    kind = both if len(scripts) == 2 else low if "_" in scripts else high
    return f"<{kind}>{base}{scripts.get('_', '')}{scripts.get('^', '')}</{kind}>"


def _atom(token: str, tokens: Iterator[str], display: bool) -> str:
    if token == "{":
        return _row(tokens, display)
    if token in PAIRS:
        return _in_pair(token[-1], _row(tokens, display, PAIRS[token]), PAIRS[token][-1])
    if token.startswith("\\"):
        return _command(token[1:], tokens, display)
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token.isalpha():
        return f"<mi>{token}</mi>"
    sign = {"-": "−", "'": "′"}.get(token, html.escape(token))
    return f"<mo>{sign}</mo>"


def _in_pair(opening: str, inside: str, closing: str) -> str:
    """Brackets in a row of their own: they grow with what is inside, if that is tall."""
    grows = str("<mfrac" in inside or "<munder" in inside).lower()
    left, right = (f'<mo stretchy="{grows}">{sign}</mo>' for sign in (opening, closing))
    return f"<mrow>{left}{inside}{right}</mrow>"


def _command(name: str, tokens: Iterator[str], display: bool) -> str:
    if name.startswith("text{"):
        words = name[5:-1].replace(" ", "\N{NO-BREAK SPACE}")
        return f"<mtext>{html.escape(words)}</mtext>"
    if name == "frac":
        return f"<mfrac>{_one(tokens, display)}{_one(tokens, display)}</mfrac>"
    if name in LETTERS:
        return f"<mi>{LETTERS[name]}</mi>"
    if name in OPERATORS:
        return f"<mo>{html.escape(OPERATORS[name])}</mo>"
    if name in BARS:
        return f'<mo form="{BARS[name]}" stretchy="false">|</mo>'
    if name in NAMES:
        return f"<mi>{name}</mi><mo>&#8289;</mo>"
    if name in SPACES:
        return f'<mspace width="{SPACES[name]}em"></mspace>'
    raise ValueError(f"formula: \\{name} is not known; docs/hooks.py lists what is")


# The command line


def command_pages(parser: argparse.ArgumentParser, level: int = 2) -> Iterator[str]:
    """Markdown about a parser and, one level below, about its commands."""
    if level > 2:
        yield f"\n{'#' * (level - 1)} {parser.prog}\n"
    yield f"\n{parser.description or ''}\n\n```text\n{_usage(parser)}\n```\n"
    plain = [action for action in parser._actions if _is_shown(action)]
    if plain:
        yield "\n| argument | meaning |\n|---|---|\n"
        yield from (f"| {_argument(action)} | {_meaning(parser, action)} |\n" for action in plain)
    if parser.epilog:
        yield _epilog(parser.epilog % {"prog": parser.prog})
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from command_pages(command, level + 1)


def _epilog(text: str) -> str:
    """The examples at the end of a help as code, other words as words."""
    heading, _, examples = text.partition(":")
    if not heading.startswith("example"):
        return f"\n{html.escape(text)}\n"
    return f"\nExample:\n\n```sh\n{textwrap.dedent(examples.strip(chr(10))).strip()}\n```\n"


def _is_shown(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS
    return not hidden and not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = parser.formatter_class(parser.prog, width=78)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    return formatter.format_help().strip()


def _argument(action: argparse.Action) -> str:
    """The names of an argument, and what follows them."""
    if action.choices is not None and action.metavar is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return _code(value)
    names = ", ".join(map(_code, action.option_strings))
    return names if action.nargs == 0 else f"{names} {_code(value)}"


def _code(text: str) -> str:
    return f'<code class="option">{html.escape(text).replace("|", "&#124;")}</code>'


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    words = parser._get_formatter()._expand_help(action) if action.help else ""
    return html.escape(" ".join(words.split())).replace("|", "&#124;").replace("*", "&#42;")


# Docstrings


class Roles(griffe.Extension):
    """Roles of docstrings as links, where their name is public."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class or function."""
        if obj.docstring:
            text = ROLE.sub(lambda found: _link(found[1]), obj.docstring.value)
            text = OPTIONS.sub(lambda found: _as_list(found[0]), text)
            plain, heading, examples = text.partition("\nExamples\n---")
            obj.docstring.value = PROMPTS.sub(r"```pycon\n\1\n```", plain) + heading + examples


ROLE = re.compile(r":(?:func|class|meth|attr):`([^`]+)`")
OPTIONS = re.compile(r"^\*\*options\n(?:(?: {4}.*)?\n)+", re.MULTILINE)
PROMPTS = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)  # code outside of "Examples"
OPTION = re.compile(r"^ {4}(\w+(?:, \w+)*)(?: : (.+))?$", re.MULTILINE)
HOMES = ("", "Preferences.", "Posterior.")  # where a name without a class may belong


def _as_list(options: str) -> str:
    """The options of `fit`, one point each."""
    return OPTION.sub(
        lambda found: f"    - `{found[1]}`" + (f" ({found[2]})" if found[2] else "") + "  ", options
    )


def _link(name: str) -> str:
    short = name.removeprefix("pseudomallows.")
    for home in HOMES:
        try:
            found = operator.attrgetter(home + short)(pm)
        except AttributeError:
            continue
        return f"[`{short}`][{found.__module__}.{found.__qualname__}]"
    return f"`{short}`"
