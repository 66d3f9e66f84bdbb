"""The exception for errors of libtorus, and its codes."""

import enum
from typing import Union


class ErrorCode(enum.IntEnum):
    """The codes of enum torus_error_code. TorusError.code is a plain int if a newer library uses another code."""

    USAGE = 1
    REFUSED = 2
    LINK = 3
    PROTOCOL = 4
    IO = 5
    MEMORY = 6
    TIMEOUT = 7
    CANCELLED = 8
    DAMAGED = 9
    IN_DOUBT = 10
    BUSY = 11
    NO_DAEMON = 100
    LOST = 101


class TorusError(Exception):
    """An error that libtorus reports. `code` is an ErrorCode."""

    code: Union[ErrorCode, int]

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = code
