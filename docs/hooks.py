"""What the site needs beyond Markdown: formulas, the command reference, names in docstrings.

- ``$$ ... $$`` and ``\\( ... \\)`` become MathML, which browsers show without any script. A TeX
  command that is not known stops the build.
- ``<!-- commands -->`` becomes the reference of the command line, from its parser.
- ``<!-- options -->`` becomes the options of the methods of `fit`.
- ``::: pm.name`` stands for the full path of a public name, for mkdocstrings.
- The roles of docstrings, such as ``:func:`fit` ``, become links.
"""

import argparse
import html
import operator
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Literal

import griffe
from latex2mathml.converter import convert

import pseudomallows as pm
from pseudomallows.cli import make_parser
from pseudomallows.sampling.options import describe_options

SIGN = re.compile("(&#x00028;</mo>)<mo>(?=&#x02212;)")  # after a bracket, minus is a sign: no space
FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Change a page before it becomes HTML; code blocks stay as they are."""
    parts = FENCE.split(markdown)
    parts[::2] = [_change(part) for part in parts[::2]]
    page = "".join(parts).replace("<!-- commands -->", "".join(command_pages(make_parser())))
    return page.replace("<!-- options -->", option_lists())


def option_lists() -> str:
    """The options of each method as lists."""
    lines = describe_options().splitlines()
    listed = [re.sub(r"^  (\w+): ", r"- `\1`: ", line) for line in lines]
    return "\n".join(line if line.startswith("- ") else f"\n{line}:\n" for line in listed)


def _change(text: str) -> str:
    text = re.sub(r"\$\$(.+?)\$\$", lambda found: block_formula(found[1]), text, flags=re.DOTALL)
    text = re.sub(r"\\\((.+?)\\\)", lambda found: line_formula(found[1]), text, flags=re.DOTALL)
    return re.sub(r"^::: pm\.(\S+)$", lambda found: _full_path(found[1]), text, flags=re.MULTILINE)


def _full_path(name: str) -> str:
    found = operator.attrgetter(name)(pm)
    return f"::: {found.__module__}.{found.__qualname__}"


# Formulas


def block_formula(tex: str) -> str:
    """A formula on a line of its own."""
    return f'<div class="formula">{formula(tex, display="block")}</div>'


def line_formula(tex: str) -> str:
    """A formula in a line; in a span, since Markdown ends the paragraph before a bare `math`."""
    return f"<span>{formula(tex)}</span>"


def formula(tex: str, display: Literal["inline", "block"] = "inline") -> str:
    r"""MathML of TeX.

    >>> formula(r"x^2").partition(">")[2]
    '<mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    """
    found = convert(tex, display=display)
    if "\\" in found:  # latex2mathml shows a command that it does not know as it is
        raise ValueError(f"formula: latex2mathml does not know a command in {tex.strip()!r}")
    return SIGN.sub(r'\1<mo form="prefix">', found)


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
            plain, heading, examples = text.partition("\nExamples\n---")
            obj.docstring.value = PROMPTS.sub(r"```pycon\n\1\n```", plain) + heading + examples


ROLE = re.compile(r":(?:func|class|meth|attr):`([^`]+)`")
PROMPTS = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)  # code outside of "Examples"
HOMES = ("", "Preferences.", "Posterior.")  # where a name without a class may belong


def _link(name: str) -> str:
    short = name.removeprefix("pseudomallows.")
    for home in HOMES:
        try:
            found = operator.attrgetter(home + short)(pm)
        except AttributeError:
            continue
        return f"[`{short}`][{found.__module__}.{found.__qualname__}]"
    return f"`{short}`"
