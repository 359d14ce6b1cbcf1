"""Edit operations by definition: the cost of every pair of prefixes, each from those next to it."""


def edit_cost(translation, edited):
    """Returns the fewest insertions and deletions that turn one sequence into the other."""
    costs = {}
    for i in range(len(translation) + 1):
        for j in range(len(edited) + 1):
            ways = [costs[i - 1, j] + 1] if i else []
            ways += [costs[i, j - 1] + 1] if j else []
            ways += [costs[i - 1, j - 1]] if i and j and translation[i - 1] == edited[j - 1] else []
            costs[i, j] = min(ways, default=0)
    return costs[len(translation), len(edited)]
