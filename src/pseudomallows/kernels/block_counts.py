"""Users in blocks of items that share ranks, by a law that is additive over items: counts of who
has which item in which block, and sums of its log weights."""

from .compiled import compiled


@compiled
def count_blocks(blocks, labels, weights, counts):
    """Add to `counts[label, block, item]` the users of each row of `blocks[row, item]`."""
    for row in range(len(labels)):
        mine = counts[labels[row]]
        for item in range(blocks.shape[1]):
            mine[blocks[row, item], item] += weights[row]


@compiled
def count_clicks(clicks, size_places, labels, weights, counts):
    """Add to `counts[label, size, item]` the users of the label who clicked the item, by the place
    of their number of clicks in a list of sizes."""
    for row in range(len(labels)):
        mine = counts[labels[row], size_places[row]]
        for place in range(clicks.starts[row], clicks.starts[row + 1]):
            mine[clicks.codes[place]] += weights[row]


@compiled
def sum_weights(counts, consensus, table):
    """Sum of `table[block, rank - 1]` over `counts[block, item]` users."""
    total = 0.0
    for block in range(counts.shape[0]):
        for item in range(counts.shape[1]):
            if counts[block, item]:
                total += counts[block, item] * table[block, consensus[item] - 1]
    return total


@compiled
def fill_costs(counts, table, costs):
    """Take `counts[block, item]` times `table[block, rank - 1]` off `costs[item, rank - 1]`."""
    for block in range(counts.shape[0]):
        for item in range(counts.shape[1]):
            count = counts[block, item]
            if count:
                for rank in range(costs.shape[1]):
                    costs[item, rank] -= count * table[block, rank]


@compiled
def add_block_logs(blocks, log_weights, logs):
    """Add to `logs[row, cluster]` the `log_weights[block, item, cluster]` of the row's items."""
    for row in range(len(logs)):
        mine = logs[row]
        for item in range(blocks.shape[1]):
            added = log_weights[blocks[row, item], item]
            for cluster in range(len(mine)):
                mine[cluster] += added[cluster]


@compiled
def add_click_logs(clicks, size_places, log_weights, logs):
    """Add to `logs[row, cluster]` the `log_weights[size, item, cluster]` of the row's clicks."""
    for row in range(len(logs)):
        mine, weights = logs[row], log_weights[size_places[row]]
        for place in range(clicks.starts[row], clicks.starts[row + 1]):
            added = weights[clicks.codes[place]]
            for cluster in range(len(mine)):
                mine[cluster] += added[cluster]
