"""Compiled loops for the footrule, all by one dynamic programme along the ranks.

A ranking is a matching of items with ranks, and its weight is exp(-rate * distance), rate being
alpha / n_items. Put the items on a line at their places in the consensus, 1 to n, and the ranks at
theirs. An item at place p that takes rank r costs |p - r|: one for each unit of the line between
them. So go along the line from left to right and keep, of all that has been passed, only what is
still unmatched: `open items`, which wait for a rank further on, and `open ranks`, which wait for an
item. Crossing one unit costs exp(-rate) for each of them, and the sum of these costs along the
whole line is exp(-rate * distance).

What can happen at a place where an item and a rank stand, with a open items and b open ranks:

- both stay open: a + 1, b + 1 (1 way);
- the item takes an open rank, and the rank stays open (b ways), or the rank goes to an open item
  and the item stays open (a ways), or they take each other (1 way): a, b;
- both are matched with open ones: a - 1, b - 1 (a * b ways).

Where every place has an item and a rank, a = b = k, so the state is one number and the sum over all
n! rankings, the partition function, is a recursion over n places with at most n / 2 states: n^2
steps. With some items and ranks already matched, as for users known in part, places may have an
item only, a rank only, or neither. Then a - b, the gap, changes along the line, but it is known at
each place, so the state is still one number, k = min(a, b). Blocks of items that share a set of
ranks are matched among themselves: one recursion a block.

- Sums (`matching.sum_matchings`): the weights of all paths, place by place.
- Draws (`matching.draw_matching`): back along the table of sums, each step by its share of the sum.
- Marginals and means of the whole distribution (`partition`): sums from both ends, joined in the
  middle; and its draws.
- Rankings known in part, ties and clicks (two blocks: the clicked items with the first ranks, the
  others with the rest): `latent_blocks` gives their probabilities and draws. `recursions` holds
  what all users of a law share, so that everything behind the last click is known in advance; with
  it `click_likelihood` gives the probability of the clicks, and `next_ranks` the probabilities of
  what comes next.

Numbers: a state is weighed by sqrt(a! * b!), so that ways to open and to close have one factor,
sqrt((a + 1) * (b + 1)), and the weights stay within range; rows are scaled to sum 1 now and then,
and states that carry less than 1e-18 of the sum are left out.
"""
