"""Names in a buffer of bytes: where they stand in lines of text, and the code of each."""

import numpy as np
from numba import njit

OFFSET, PRIME, BITS = 2166136261, 16777619, 0xFFFFFFFF  # of the hash FNV-1a
CODE_BITS = 31
GROUP = 32  # names whose memory is waited for together
CODE_MASK = (1 << CODE_BITS) - 1
TAB, NEWLINE, RETURN, SPACE, QUOTE = 9, 10, 13, 32, 34
LONGEST = 1_000_000  # bytes of a cell
DONE, MORE, TROUBLE = 0, 1, 2  # how a cell ends: whole, cut off by the end of the buffer, unclear


@njit(cache=True, nogil=True)
def hash_bytes(data, begin, end):
    """32 bits that depend on every byte of ``data[begin:end]``."""
    bits = np.int64(OFFSET)
    for place in range(begin, end):
        bits = ((bits ^ np.int64(data[place])) * PRIME) & BITS
    bits = ((bits ^ (bits >> 15)) * PRIME) & BITS
    return bits ^ (bits >> 13)


@njit(cache=True, nogil=True)
def find_codes(data, begins, ends, table, stored, bounds, n_known, codes):
    """The code of each name ``data[begins[row]:ends[row]]``, -1 if it begins at -1; how many exist.

    Codes count the names as they come. Name `code` is ``stored[bounds[code]:bounds[code + 1]]``.
    `table` finds it: a power of 2 of slots, less than full, each 0 or hash and code + 1.
    """
    mask, touched = len(table) - 1, 0
    hashes, places = np.empty(GROUP, dtype=np.int64), np.empty(GROUP, dtype=np.int64)
    for first in range(0, len(codes), GROUP):
        last = min(first + GROUP, len(codes))
        for row in range(first, last):
            hashes[row - first] = hash_bytes(data, begins[row], ends[row])
        touched += look_ahead(table, stored, bounds, hashes, places)
        for row in range(first, last):
            begin, end = np.int64(begins[row]), np.int64(ends[row])
            if begin < 0:
                codes[row] = -1
                continue
            bits = hashes[row - first]
            slot, code = bits & mask, -1
            while code < 0:
                entry = table[slot]
                if entry == 0:
                    code = n_known
                    table[slot] = (bits << CODE_BITS) | (code + 1)
                    n_known += 1
                    bounds[n_known] = bounds[code] + end - begin
                    for place in range(end - begin):
                        stored[bounds[code] + place] = data[begin + place]
                elif entry >> CODE_BITS == bits and is_same(
                    data, begin, end, stored, bounds, (entry & CODE_MASK) - 1
                ):
                    code = (entry & CODE_MASK) - 1
                else:
                    slot = (slot + 1) & mask
            codes[row] = code
    return n_known if touched >= 0 else -1  # always so: a sum that is needed is not left out


@njit(cache=True, nogil=True)
def look_ahead(table, stored, bounds, hashes, places):
    """Touch what a group of names will need, all at once: memory is then waited for once."""
    for row in range(len(hashes)):
        places[row] = table[hashes[row] & (len(table) - 1)] & CODE_MASK
    for row in range(len(hashes)):
        places[row] = bounds[max(places[row] - 1, 0)]
    touched = 0
    for row in range(len(hashes)):
        touched += np.int64(stored[places[row]])
    return touched


@njit(cache=True, nogil=True)
def is_same(data, begin, end, stored, bounds, code):
    """Whether ``data[begin:end]`` is the name that has this code."""
    first = bounds[code]
    if bounds[code + 1] - first != end - begin:
        return False
    for place in range(end - begin):  # noqa: SIM110
        if data[begin + place] != stored[first + place]:
            return False
    return True


@njit(cache=True, nogil=True)
def move_entries(table, larger):
    """Put what is in a table of names into a larger one, which is all 0."""
    mask = len(larger) - 1
    for entry in table:
        if entry:
            slot = (entry >> CODE_BITS) & mask
            while larger[slot]:
                slot = (slot + 1) & mask
            larger[slot] = entry


@njit(cache=True, nogil=True)
def split_lines(data, begin, end, delimiter, n_columns, wanted, state, cells, lines):
    """Find some cells of each whole line in ``data[begin:end]``, until `lines` is full.

    That of column ``wanted[which]`` is ``data[cells[2 * which, row]:cells[2 * which + 1, row]]``;
    blank lines are passed over. `lines` are the numbers of
    the lines, of which the first is ``state[1]``. Two quotes in quotes become one, within `data`.
    On return, ``state[0]`` is where the first line begins that is not read, ``state[1]`` its
    number, and ``state[2]`` tells why: DONE (full), MORE (not whole) or TROUBLE (no plain table).
    """
    row, cell = 0, np.empty(5, dtype=np.int64)
    state[0], state[2] = begin, DONE
    while row < len(lines):
        place, line, column, is_blank, is_last = state[0], state[1], 0, True, False
        while not is_last:
            how = find_cell(data, place, end, delimiter, cell)
            if how != DONE:
                state[2] = how
                return row
            place, line = cell[2], line + cell[3]
            is_last = data[place - 1] == NEWLINE
            has_text = not is_space(data, cell[0], cell[1])
            is_blank = is_blank and not has_text
            if column >= n_columns and has_text:
                state[2] = TROUBLE
                return row
            for which in range(len(wanted)):
                if column == wanted[which]:
                    cells[2 * which, row] = cell[0]
                    cells[2 * which + 1, row] = -cell[1] if cell[4] else cell[1]
            column += 1
        if not is_blank:
            if column < n_columns:
                state[2] = TROUBLE
                return row
            for which in range(1, 2 * len(wanted), 2):
                if cells[which, row] < 0:
                    cells[which, row] = join_quotes(data, cells[which - 1, row], -cells[which, row])
            lines[row] = state[1]
            row += 1
        state[0], state[1] = place, line
    return row


@njit(cache=True, nogil=True)
def find_cell(data, place, end, delimiter, cell):
    """Find the cell at `place`: begin, end, begin of the next, line ends, whether quotes are two.

    It is as the csv module of Python has it, for a table in which every quote that opens a cell
    also closes it. Returns DONE, MORE or TROUBLE.
    """
    cell[3] = cell[4] = 0
    while place < end and data[place] == SPACE:
        place += 1
    if place < end and data[place] == QUOTE:
        place += 1
        cell[0] = place
        while True:
            while place < end and data[place] > QUOTE:
                place += 1
            if place + 1 >= end:
                return MORE
            byte = data[place]
            if byte == QUOTE:
                if data[place + 1] != QUOTE:
                    break
                cell[4] = 1
                place += 1
            elif byte == NEWLINE:
                cell[3] += 1
            elif (
                byte < SPACE and byte != TAB and not (byte == RETURN and data[place + 1] == NEWLINE)
            ):
                return TROUBLE
            place += 1
        cell[1] = place
        place += 1
        while place < end and data[place] == SPACE:
            place += 1
        if place < end and data[place] == RETURN:
            place += 1
    else:
        cell[0] = place
        while place < end:
            byte = data[place]
            if byte == delimiter or (byte < SPACE and byte != TAB):
                break
            place += 1
        cell[1] = place
        if place < end and data[place] == RETURN:
            place += 1
    if place >= end:
        return MORE
    if data[place] == NEWLINE:
        cell[3] += 1
    elif data[place] != delimiter or data[place - 1] == RETURN:
        return TROUBLE
    cell[2] = place + 1
    return DONE if cell[1] - cell[0] <= LONGEST else TROUBLE


@njit(cache=True, nogil=True)
def is_space(data, begin, end):
    """Whether nothing is left of text once spaces are stripped, those beyond ASCII included."""
    place = begin
    while place < end:
        byte = data[place]
        if byte <= SPACE:
            place += 1
        elif byte < 0xC2 or byte > 0xE3 or 0xC2 < byte < 0xE1:
            return False
        elif byte == 0xC2 and place + 1 < end:
            if data[place + 1] != 0x85 and data[place + 1] != 0xA0:
                return False
            place += 2
        elif place + 2 < end:
            second, third = data[place + 1], data[place + 2]
            is_one = (
                (byte == 0xE1 and second == 0x9A and third == 0x80)
                or (byte == 0xE2 and second == 0x81 and third == 0x9F)
                or (byte == 0xE2 and second == 0x80 and (third <= 0x8A or third == 0xAF))
                or (byte == 0xE2 and second == 0x80 and 0xA8 <= third <= 0xA9)
                or (byte == 0xE3 and second == 0x80 and third == 0x80)
            )
            if not is_one:
                return False
            place += 3
        else:
            return False
    return True


@njit(cache=True, nogil=True)
def join_quotes(data, begin, end):
    """Make one quote of every two in ``data[begin:end]``, in place; the new end."""
    to, place = begin, begin
    while place < end:
        data[to] = data[place]
        place += 2 if data[place] == QUOTE else 1
        to += 1
    return to
