"""A module of the user's own that a topology imports."""


def doubled(number: int) -> int:
    return 2 * number
