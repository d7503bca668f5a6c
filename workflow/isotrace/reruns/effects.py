"""What a changed config reruns, from its jobs before and after: those that differ, those that are new, all below.

As Snakemake decides: by the repr of params and by the set of inputs, file by file, and by what is upstream.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from isotrace.reruns.graph import Graph, Job


@dataclass(frozen=True)
class Effect:
    """Rules by what happens to their jobs, each in the order of the data.

    first: jobs that are there already and run again for a reason of their own; new: jobs that were not there, and
    for a reason of their own; again: all jobs that are there and run again; added: all jobs that were not there.
    """

    first: tuple[str, ...]
    new: tuple[str, ...]
    again: tuple[str, ...]
    added: tuple[str, ...]


def effect(before: Graph, after: Graph) -> Effect:
    """What the config of ``after`` reruns where that of ``before`` is finished."""
    known, order = before.by_file, order_of(after)
    changed = {job for job in after.jobs if any(_differs(known.get(file), job) for file in job.outputs)}
    below = _below(changed, after)
    made = after.by_file
    own = {job for job in changed if not any(made.get(file) in below for file in job.inputs)}
    fresh = {job for job in below if not any(file in known for file in job.outputs)}

    def rules(jobs: Iterable[Job]) -> tuple[str, ...]:
        return tuple(sorted({job.rule for job in jobs}, key=order.__getitem__))

    return Effect(rules(own - fresh), rules(own & fresh), rules(below - fresh), rules(below & fresh))


def _differs(before: Job | None, job: Job) -> bool:
    return before is None or (before.params, before.inputs) != (job.params, job.inputs)


def _below(start: Iterable[Job], graph: Graph) -> set[Job]:
    """These jobs and all that read what they write."""
    readers = _readers(graph)
    found, waiting = set(start), list(start)
    while waiting:
        for file in waiting.pop().outputs:
            new = readers[file] - found
            found |= new
            waiting += new
    return found


def _readers(graph: Graph) -> Mapping[str, set[Job]]:
    readers: dict[str, set[Job]] = defaultdict(set)
    for job in graph.jobs:
        for file in job.inputs:
            readers[file].add(job)
    return readers


def closures(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Of each rule all rules below it, itself not among them, in the order of the data."""
    order = order_of(graph)
    found = {}
    for rule in order:
        below = {job.rule for job in _below([job for job in graph.jobs if job.rule == rule], graph)} - {rule}
        found[rule] = tuple(sorted(below, key=order.__getitem__))
    return found


def order_of(graph: Graph) -> dict[str, int]:
    """Rules by their place on the way of the data: after all that they read, by name where that says nothing."""
    above: dict[str, set[str]] = {job.rule: set() for job in graph.jobs}
    made = graph.by_file
    for job in graph.jobs:
        above[job.rule] |= {made[file].rule for file in job.inputs if file in made} - {job.rule}
    order: list[str] = []
    while len(order) < len(above):
        order.append(min(rule for rule in above if rule not in order and above[rule] <= set(order)))
    return {rule: i for i, rule in enumerate(order)}
