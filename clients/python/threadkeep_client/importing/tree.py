"""Making a tree of what an export says of parents: nodes that hold no message are passed over, rings are cut."""

from __future__ import annotations

from collections import Counter, deque

from threadkeep_client.importing.draft import Node


def sound(nodes: list[Node], notes: Counter[str]) -> tuple[list[tuple[Node, str | None]], dict[str, str | None]]:
    """The messages, parents before children, each with the message that it stands under.

    Args:
        nodes: each id once.
        notes: counts `orphans`, whose parent is nowhere (they become roots), and `rings_cut`.

    Returns:
        The messages; and for every node the message that stands there, or the nearest one above it.
    """
    parents = _parents(nodes, notes)
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(parents[node.source], []).append(node)
    nearest: dict[str, str | None] = {}
    ordered: list[tuple[Node, str | None]] = []
    waiting = deque(children.get(None, ()))
    while waiting:
        node = waiting.popleft()
        parent = parents[node.source]
        above = None if parent is None else nearest[parent]
        nearest[node.source] = node.source if node.is_message else above
        if node.is_message:
            ordered.append((node, above))
        waiting.extend(children.get(node.source, ()))
    return ordered, nearest


def _parents(nodes: list[Node], notes: Counter[str]) -> dict[str, str | None]:
    """Parents that are there and lead to a root."""
    parents: dict[str, str | None] = {node.source: node.parent for node in nodes}
    for number, node in enumerate(nodes):
        if node.parent is not None and node.parent not in parents:
            parents[node.source] = None
            notes["orphans"] += number > 0  # what comes first stands under nothing, whatever it names
    by_source = {node.source: (number, node) for number, node in enumerate(nodes)}
    rooted: set[str] = set()
    for node in nodes:
        walk: list[str] = []
        at: str | None = node.source
        on_walk: set[str] = set()
        while at is not None and at not in rooted and at not in on_walk:
            walk.append(at)
            on_walk.add(at)
            at = parents[at]
        if at in on_walk:
            ring = walk[walk.index(at) :]
            # Cut where it most likely began: at what was written first, and stands first where times are equal.
            first = min(ring, key=lambda name: (by_source[name][1].time_ms or 0, by_source[name][0]))
            parents[first] = None
            notes["rings_cut"] += 1
        rooted.update(walk)
    return parents
