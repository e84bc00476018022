"""Computes a Dask graph step by step, in bounded memory.

Computing the parts of an array one after the other by themselves would run what they share (an input that two parts
overlap, a mean over all) once for each. Here such results are kept for the steps that still need them, and no longer.
"""

from dask.core import get_deps, literal


class Steps:
    """
    graph
        All tasks by key.
    wanted
        For each step the keys of its results, lists of lists of keys, in whatever shape they shall come back.
    ahead
        For each step keys that it computes for later steps alone. Without it what a later step needs is computed then.

    A result that the next step needs too is kept, and so is one that three or more need. What two steps far from each
    other need, as pixels of which a mean is made before they are used, is computed twice: keeping all of that
    would be to keep the whole array.
    """

    def __init__(self, graph, wanted, ahead=None):
        self.graph = graph
        self.wanted = wanted
        self.ahead = ahead or [[]] * len(wanted)
        self.needs, users = get_deps(graph)
        self.last_use = self._last_uses(users)

    def results(self, get, keep=lambda result: (literal(result),)):
        """What `get(graph, keys)` makes of the keys of each step, one step after the other. `keep` says how one of its
        results stands in the graph of a later step."""
        kept = {}
        for number, keys in enumerate(self.wanted):
            tasks = self._tasks(self._roots(number), done=kept)
            later = [key for key in tasks if self.last_use.get(key, number) > number]
            found = {key: self.graph[key] for key in tasks}
            results = list(get(found | {key: keep(result) for key, result in kept.items()}, [keys, later]))
            kept |= zip(later, results.pop(), strict=True)
            kept = {key: result for key, result in kept.items() if self.last_use[key] > number}
            yield results.pop()  # and has none of it while the caller uses it

    def _roots(self, number):
        return [*_flat(self.wanted[number]), *self.ahead[number]]

    def _tasks(self, roots, done):
        """All keys that have to be computed for the roots; those without a task are the scheduler's already."""
        found, waiting = {}, list(roots)
        while waiting:
            key = waiting.pop()
            if key in self.graph and key not in found and key not in done:
                found[key] = True
                waiting.extend(self.needs[key])
        return found

    def _last_uses(self, users):
        """For each result that is worth keeping the last step that needs it."""
        first, ahead = {}, {key for keys in self.ahead for key in keys}
        for number in range(len(self.wanted)):
            first |= dict.fromkeys(self._tasks(self._roots(number), done=first), number)
        last = {}
        for key, number in first.items():
            uses = {first[user] for user in users[key] if user in first} - {number}
            if uses and (key in ahead or number + 1 in uses or len(uses) > 1):
                last[key] = max(uses)
        return last


def _flat(keys):
    for key in keys:
        if isinstance(key, list):
            yield from _flat(key)
        else:
            yield key
