"""What a rank holds of a tensor, in the words of programs."""

import json
import re

ENTRY = re.compile(r"S\((\d+)\)|[BP]")


def coordinates(ranks, rank):
    """Returns where in nested lists a rank stands; None where it does not."""
    if not isinstance(ranks, list):
        return [] if ranks == rank else None
    for i, below in enumerate(ranks):
        at = coordinates(below, rank)
        if at is not None:
            return [i] + at
    return None


def piece(shape, placement, sbp, rank):
    """Returns the start and the end along each axis of what a rank holds.

    Of n entries over p ranks the first n mod p have one more.
    """
    ranks = json.loads(placement[placement.index("["):])
    at = coordinates(ranks, rank)
    entries = [m.group(0) for m in ENTRY.finditer(sbp)]
    if at is None or len(entries) != len(at) or "P" in entries:
        raise RuntimeError("rank %s of %s holds no piece by %s" % (rank, placement, sbp))
    bounds = [[0, n] for n in shape]
    for entry, i in zip(entries, at):
        if entry[0] == "S":
            if int(entry[2:-1]) >= len(bounds):
                raise RuntimeError("%s splits an axis that a tensor of %d dimensions does not have" % (entry, len(bounds)))
            lo, hi = bounds[int(entry[2:-1])]
            size, more = divmod(hi - lo, len(ranks))
            lo += i * size + min(i, more)
            bounds[int(entry[2:-1])] = [lo, lo + size + (i < more)]
        ranks = ranks[0]
    return bounds


def local(read, tensor, placement, sbp, rank=0):
    """Returns what a rank holds of a tensor, which `read` reads at an index."""
    return read(tensor, tuple(slice(lo, hi) for lo, hi in piece(tensor.shape, placement, sbp, rank))) if len(tensor.shape) else tensor
