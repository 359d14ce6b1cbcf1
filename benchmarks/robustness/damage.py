"""Random damage to the content of files."""

import random
import struct
from typing import Callable, List

EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**32, 2**40]


def _flip(content: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(content))
    content[place] ^= 1 << chance.randrange(8)


def _overwrite(content: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(content))
    content[place : place + chance.randint(1, 8)] = chance.randbytes(chance.randint(1, 8))


def _remove(content: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(content))
    del content[place : place + chance.randint(1, max(1, len(content) // 4))]


def _repeat(content: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(content))
    content[place:place] = content[place : place + chance.randint(1, 200)] * chance.randint(1, 20)


def _cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def _clear(content: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(content))
    end = min(len(content), place + chance.randint(1, 64))
    content[place:end] = bytes(end - place)


def _extreme(content: bytearray, chance: random.Random) -> None:
    """An integer that no file has."""
    place, value = chance.randrange(len(content)), chance.choice(EXTREMES)
    size = chance.choice([4, 8])
    content[place : place + size] = struct.pack("<q", value)[:size]


def _digits(content: bytearray, chance: random.Random) -> None:
    """A number in text, of another size or sign."""
    places = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    if places:
        place = chance.choice(places)
        content[place : place + 1] = chance.choice([b"-1", b"99999999999999999999", b"0", b"1e400", b"nan", b"x"])


def _symbols(content: bytearray, chance: random.Random) -> None:
    """What means something in one language or another."""
    signs = [bytes([sign]) for sign in b"<>&'\"\0\n\r\t{[]}:,%"]
    words = [b"!!python/name:os.system ", b"\xff\xfe", b"\xed\xa0\x80", "\u2028".encode(), b"<p>", b"../"]
    place = chance.randrange(len(content) + 1)
    content[place:place] = chance.choice(signs + words) * chance.choice([1, 1, 2, 300])


KINDS: List[Callable[[bytearray, random.Random], None]] = [
    _flip, _overwrite, _remove, _repeat, _cut, _clear, _extreme, _digits, _symbols,
]  # fmt: skip


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Returns a content with one to five damages, each at a random place."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        if changed:
            chance.choice(KINDS)(changed, chance)
    return bytes(changed)
