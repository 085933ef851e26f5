"""The kinds of data, by name."""

from .blocks import Clicks, Rankings
from .mixed import Mixed
from .pairs import Pairs
from .preferences import Preferences

KINDS: dict[str, type[Preferences]] = {each.kind: each for each in (Rankings, Clicks, Pairs, Mixed)}
