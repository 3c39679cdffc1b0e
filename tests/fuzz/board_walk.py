#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Inputs of board_agent.c and board_worker.c that go over the whole board: each value of a list, in each word of head and slots, and
for workers in each word of what peers say about a collective. What comes before and after are steps of these two, by their numbers.

    board_walk.py agent|worker | build/tests/fuzz/board_agent|board_worker -
    board_walk.py agent|worker NUMBER        one of them, for a debugger
"""
import struct
import sys

HEAD, SLOT, SLOTS, PLACES = 448, 832, 4, 3  # board.c asserts the sizes; 3 ranks and a spare in both fuzzers
TEXT = 320 + 16  # of a slot: where the error text stands, but for its beginning
VALUES = [0, 2, 7, 0x80000000, 0xffffffff]
JOINED = 1  # enum stage


def agent(at, value):
    """Three ranks have joined; one word is spoilt, in this generation and in the next; the agent does all that it does."""
    scribble = struct.pack("<BBHI", 0, 2, at, value)
    ranks = b"".join(bytes([1, rank + PLACES * JOINED, 3, 1, 1]) for rank in range(PLACES))
    bell, release, stop = b"\3", b"\5", b"\x09\x0f"
    asks = b"".join(bytes([4, rank, 1]) + struct.pack("<Q", 1000) for rank in range(PLACES))
    look = bytes([10, 1, 0, 10, 9, 1])
    fails = bytes([11, 7, 11, 0])
    seen = bell + asks + release + look + fails
    heal = struct.pack("<BBI", 6, 1, 1000) + bytes([8, 1])
    yield ranks + bell + scribble + seen + heal + ranks + scribble + seen + stop + asks + fails


def worker(at, value):
    """One word is spoilt before a rank or a standby joins, before its first collective, in the midst of one."""
    scribble = struct.pack("<BBHI", 6, 2, at, value)
    agree = b"\2\0"
    calls = b"".join(bytes([what, 64, 0]) + agree for what in (0, 1, 2, 3, 4, 5, 0, 3))
    yield b"\0" + scribble + b"\0" + calls
    yield b"\0" + b"\0" + b"\0\0\0" + scribble + agree + calls
    yield b"\0" + b"\0" + b"\3\x40\0" + b"\2" + scribble + b"\0" + calls
    yield b"\3" + scribble + b"\0" + b"\5\1\0" + calls
    yield b"\3" + b"\0" + scribble + b"\5\1\0" + calls


def peer(place, half, at, value):
    """What a peer says that it does, spoilt after all have agreed."""
    spoil = bytes([1, place]) + struct.pack("<I", half << 19 | at)[:3] + struct.pack("<II", value, value)
    for what in (1, 2, 3):
        yield b"\0\0" + (bytes([what, 64, 0]) + b"\2" + spoil + b"\0") * 4


def words():
    yield from range(0, HEAD, 4)
    for slot in range(SLOTS):
        yield from range(HEAD + slot * SLOT, HEAD + slot * SLOT + TEXT, 4)


def inputs(side):
    for at in words():
        for value in VALUES:
            yield from (agent if side == "agent" else worker)(at, value)
    if side == "worker":
        for at in range(0, 32, 4):
            for value in VALUES:
                for place in range(PLACES):
                    yield from peer(place, 0, at, value)
                    yield from peer(place, 1, at, value)


def main():
    for i, data in enumerate(inputs(sys.argv[1])):
        if len(sys.argv) < 3:
            sys.stdout.buffer.write(struct.pack("<I", len(data)) + data)
        elif i == int(sys.argv[2]):
            sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
