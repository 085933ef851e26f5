"""Random numbers for kernels: a stream is one 64-bit number that a kernel carries along.

The stream of a user depends on (seed, draw, user) alone, never on the block, thread or machine
that handles the user. The generator is splitmix64 (Steele, Lea and Flood 2014).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

# of splitmix64, as published: the step is 2^64 over the golden ratio; 11 bits less are a float's 53
STEP = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_11 = (np.uint64(bits) for bits in (30, 27, 31, 11))
CENTRE, CHAIN = 2**62, 2**62 + 1  # numbers that no user has: streams of the consensus


class Streams(NamedTuple):
    """The streams of some rows of users in one draw: row `row` stands for `weights[row]` users,
    numbered from `first_users[row]`, and each of them has a stream."""

    seed: int
    draw: int
    first_users: NDArray[np.int64]
    weights: NDArray[np.int64]


@compiled
def mix(bits):
    """Scramble 64 bits so that neighbouring inputs have unrelated outputs."""
    bits = (bits ^ (bits >> SHIFT_30)) * MIX_1
    bits = (bits ^ (bits >> SHIFT_27)) * MIX_2
    return bits ^ (bits >> SHIFT_31)


@compiled
def start_stream(seed, draw, user, stream):
    """Set `stream[0]` to the start of the stream of (seed, draw, user)."""
    bits = mix(np.uint64(seed) + STEP)
    bits = mix(bits + np.uint64(draw) * STEP)
    stream[0] = mix(bits + np.uint64(user) * MIX_1)


@compiled
def start_user(streams, row, user, stream):
    """Set `stream[0]` to the start of the stream of a row's user, counted from 0."""
    start_stream(streams.seed, streams.draw, streams.first_users[row] + user, stream)


@compiled
def uniform(stream):
    """Draw a number in [0, 1)."""
    stream[0] += STEP
    return np.float64(mix(stream[0]) >> SHIFT_11) * 2.0**-53


@compiled
def below(stream, bound):
    """Draw an integer in 0..bound - 1; the bias, below bound / 2^53, is far beyond any test."""
    return int(uniform(stream) * bound)
