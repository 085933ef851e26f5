"""Orders in which the paper visits a user's items (section 3.3), by name."""

from ..kernels.groups import TOP_BOTTOM, UNIFORM, V

ORDERS = {"uniform": UNIFORM, "v": V, "top_bottom": TOP_BOTTOM}
