"""The number that so many others are not above. Numba takes seven seconds to compile NumPy's."""

from .compiled import compiled


@compiled
def smallest(values, place):
    """The value that stands at a place, from 0, in rising order. Others change places: Hoare's
    quickselect."""
    low, high = 0, len(values) - 1
    while low < high:
        pivot, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                here = values[i]
                values[i] = values[j]
                values[j] = here
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]
