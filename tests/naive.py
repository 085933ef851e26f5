"""Every model by its definition, in plain Python, for three to six items."""

import functools
import itertools
import math


def all_rankings(n_items):
    """Every ranking of n items."""
    return list(itertools.permutations(range(1, n_items + 1)))


def footrule(ranking, other):
    """Sum of the differences in rank."""
    return sum(abs(a - b) for a, b in zip(ranking, other, strict=True))


def spearman(ranking, other):
    """Sum of the squared differences in rank."""
    return sum((a - b) ** 2 for a, b in zip(ranking, other, strict=True))


def hamming(ranking, other):
    """How many items have another rank."""
    return sum(a != b for a, b in zip(ranking, other, strict=True))


def kendall(ranking, other):
    """How many pairs of items are in another order."""
    pairs = itertools.combinations(range(len(ranking)), 2)
    return sum((ranking[i] < ranking[j]) != (other[i] < other[j]) for i, j in pairs)


def cayley(ranking, other):
    """The fewest exchanges of two items that lead from one to the other."""
    return _fewest_moves(len(ranking), _exchanges)[_relative(ranking, other)]


def ulam(ranking, other):
    """The fewest items that must move to another place, one by one."""
    return _fewest_moves(len(ranking), _insertions)[_relative(ranking, other)]


def _relative(ranking, other):
    """The ranks that `ranking` gives to the items in the order of `other`."""
    return tuple(rank for _, rank in sorted(zip(other, ranking, strict=True)))


def _exchanges(order):
    for i, j in itertools.combinations(range(len(order)), 2):
        moved = list(order)
        moved[i], moved[j] = moved[j], moved[i]
        yield tuple(moved)


def _insertions(order):
    for i, j in itertools.permutations(range(len(order)), 2):
        moved = list(order)
        moved.insert(j, moved.pop(i))
        yield tuple(moved)


@functools.cache
def _fewest_moves(n_items, moves):
    """{order: how many moves lead there from 1..n}, nearest first."""
    found = {tuple(range(1, n_items + 1)): 0}
    waiting = list(found)
    for order in waiting:
        for moved in moves(order):
            if moved not in found:
                found[moved] = found[order] + 1
                waiting.append(moved)
    return found


DISTANCES = {each.__name__: each for each in (footrule, spearman, hamming, kendall, cayley, ulam)}


def normalise(weights):
    """Scale the values of a dict to sum to 1."""
    total = math.fsum(weights.values())
    return {key: value / total for key, value in weights.items()}


def weight(ranking, consensus, alpha, distance="footrule"):
    """What the probability of a ranking is proportional to."""
    return math.exp(-alpha / len(ranking) * DISTANCES[distance](ranking, consensus))


@functools.lru_cache(maxsize=2000)
def log_partition(n_items, alpha, distance="footrule"):
    """Log of the sum over all rankings."""
    center = range(1, n_items + 1)
    return math.log(math.fsum(weight(r, center, alpha, distance) for r in all_rankings(n_items)))


def mallows(consensus, alpha, distance="footrule"):
    """{ranking: probability}."""
    rankings = all_rankings(len(consensus))
    return normalise({r: weight(r, consensus, alpha, distance) for r in rankings})


def marginals(law):
    """table[item][rank - 1] of {ranking: probability}."""
    n_items = len(next(iter(law)))
    table = [[0.0] * n_items for _ in range(n_items)]
    for ranking, probability in law.items():
        for item, rank in enumerate(ranking):
            table[item][rank - 1] += probability
    return table


def completions(ranks):
    """Every full ranking that agrees with what is known.

    An item of rank 0 may have any rank; m items of equal rank r have the ranks r to r + m - 1.
    """
    return _completions(tuple(ranks))


@functools.cache
def _completions(ranks):
    may_have = [
        range(1, len(ranks) + 1) if rank == 0 else range(rank, rank + ranks.count(rank))
        for rank in ranks
    ]
    return [
        r
        for r in all_rankings(len(ranks))
        if all(rank in allowed for rank, allowed in zip(r, may_have, strict=True))
    ]


def likelihood(ranks, consensus, alpha, distance="footrule"):
    """Probability of what is known of a user."""
    weights = (weight(r, consensus, alpha, distance) for r in completions(ranks))
    return math.fsum(weights) / math.exp(log_partition(len(ranks), alpha, distance))


def pair_likelihood(pairs, consensus, alpha, distance="footrule"):
    """Probability that, of each pair (better, worse), the first has the better rank."""
    law = mallows(consensus, alpha, distance)
    return math.fsum(p for r, p in law.items() if all(r[i] < r[j] for i, j in pairs))


def probability_of_statements(pairs, ranking, probability_of_error):
    """Probability of the statements (better, worse) of a user with this ranking;
    `probability_of_error(apart)` is that of a wrong one on items so many places apart."""
    probabilities = []
    for better, worse in pairs:
        apart = ranking[worse] - ranking[better]
        wrong = probability_of_error(abs(apart))
        probabilities.append(1 - wrong if apart > 0 else wrong)
    return math.prod(probabilities)


def order_law(pairs, consensus, alpha, probability_of_error, distance="footrule"):
    """{ranking: probability} of a user who makes these statements."""
    law = mallows(consensus, alpha, distance)
    weights = {
        r: p * probability_of_statements(pairs, r, probability_of_error) for r, p in law.items()
    }
    return normalise({ranking: weight for ranking, weight in weights.items() if weight > 0})


def order_likelihood(pairs, consensus, alpha, probability_of_error, distance="footrule"):
    """Probability of the statements of a user, whose ranking is not known."""
    law = mallows(consensus, alpha, distance)
    return math.fsum(
        p * probability_of_statements(pairs, r, probability_of_error) for r, p in law.items()
    )


def posterior(rows, alpha, distance="footrule"):
    """{consensus: probability}, uniform prior; rows may be partial or tied."""
    n_items = len(rows[0])
    return normalise(
        {
            consensus: math.prod(likelihood(row, consensus, alpha, distance) for row in rows)
            for consensus in all_rankings(n_items)
        }
    )


def denominators(rankings, alpha, visit_order, consensus):
    """The factors of Z^PM: for each item in turn, the sum over the ranks still free."""
    n_items, free, factors = len(consensus), set(range(1, len(consensus) + 1)), []
    for item in visit_order:
        factors.append(
            math.fsum(
                math.exp(-alpha / n_items * sum(abs(r[item] - rank) for r in rankings))
                for rank in free
            )
        )
        free.remove(consensus[item])
    return factors


def pseudo_mallows(rankings, alpha, visit_order):
    """{consensus: probability}: numerator over the product of the denominators."""
    n_items = len(visit_order)
    return {
        consensus: math.exp(-alpha / n_items * sum(footrule(r, consensus) for r in rankings))
        / math.prod(denominators(rankings, alpha, visit_order, consensus))
        for consensus in all_rankings(n_items)
    }


def item_by_item(weights, visit_order, foresees):
    """{ranking: probability}: each item among the ranks still free by `weights[item][rank - 1]`; if
    it foresees, times the probability that none of the items still to come wants the rank, by their
    weights of 0.1 % or more; no item wants one for certain."""
    n_items = len(visit_order)
    law = {}
    for ranking in all_rankings(n_items):
        probability, free = 1.0, set(range(n_items))
        for step, item in enumerate(visit_order):
            values = {rank: weights[item][rank] for rank in free}
            for later in visit_order[step + 1 :] if foresees else []:
                row = weights[later]
                wanted = {rank: row[rank] for rank in free if row[rank] > 0.001}
                for rank, weight in wanted.items():
                    values[rank] *= 1 - min(weight / math.fsum(wanted.values()), 0.9999)
            probability *= values[ranking[item] - 1] / math.fsum(values.values())
            free.remove(ranking[item] - 1)
        law[ranking] = probability
    return law


def elbo(rankings, alpha, visit_order):
    """Equation 12 of the paper, term by term."""
    return math.fsum(
        probability * math.log(math.prod(denominators(rankings, alpha, visit_order, consensus)))
        for consensus, probability in pseudo_mallows(rankings, alpha, visit_order).items()
    )


def log_evidence(rankings, alpha):
    """Log of Z_n(alpha, rankings), equation 5 of the paper."""
    n_items = len(rankings[0])
    return math.log(
        math.fsum(
            math.exp(-alpha / n_items * sum(footrule(r, consensus) for r in rankings))
            for consensus in all_rankings(n_items)
        )
    )


def v_set(ranking):
    """Definition 1 of the paper, word by word."""
    n_items = len(ranking)
    item_of = {rank: item for item, rank in enumerate(ranking)}
    found = set()
    for v in all_rankings(n_items):
        if n_items % 2:
            m = (n_items + 1) // 2
            good = v[item_of[m]] == 1 and all(
                {v[item_of[m - k]], v[item_of[m + k]]} == {2 * k, 2 * k + 1} for k in range(1, m)
            )
        else:
            m = n_items // 2
            good = all(
                {v[item_of[m - k]], v[item_of[m + k + 1]]} == {2 * k + 1, 2 * k + 2}
                for k in range(m)
            )
        if good:
            found.add(v)
    return found


def click_likelihood(clicked, consensus, alpha, distance="footrule"):
    """Probability that the clicked items have the first ranks."""
    law = mallows(consensus, alpha, distance)
    return math.fsum(p for r, p in law.items() if all(r[i] <= len(clicked) for i in clicked))


def next_probabilities(clicked, consensus, alpha, window, distance="footrule"):
    """Probability of each item to have one of the `window` ranks after the clicks; 0 if clicked."""
    n_clicks, n_items = len(clicked), len(consensus)
    law = mallows(consensus, alpha, distance)
    law = {r: p for r, p in law.items() if all(r[i] <= n_clicks for i in clicked)}
    total = math.fsum(law.values())
    return [
        math.fsum(p for r, p in law.items() if n_clicks < r[i] <= n_clicks + window) / total
        for i in range(n_items)
    ]


def memberships(likelihoods, shares):
    """Probability of each cluster, given the likelihood of a user in each."""
    weights = [like * share for like, share in zip(likelihoods, shares, strict=True)]
    return [weight / math.fsum(weights) for weight in weights]


def mixture_posterior(likelihood, n_users, n_items, n_clusters, prior):
    """{(consensuses, labels): probability}, shares summed out; `likelihood(user, consensus)`."""
    weights = {}
    for labels in itertools.product(range(n_clusters), repeat=n_users):
        sizes = [labels.count(cluster) for cluster in range(n_clusters)]
        of_labels = math.exp(
            math.fsum(math.lgamma(prior + size) for size in sizes)
            - math.lgamma(n_clusters * prior + n_users)
        )
        for centers in itertools.product(all_rankings(n_items), repeat=n_clusters):
            values = (likelihood(user, centers[label]) for user, label in enumerate(labels))
            weights[centers, labels] = of_labels * math.prod(values)
    return normalise(weights)
