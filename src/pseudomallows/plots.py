"""`pseudomallows.plots` is `pseudomallows.show.plots`."""

import sys

from .show import plots

sys.modules[__name__] = plots
