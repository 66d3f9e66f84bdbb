"""Errors of the library."""

import enum


class ErrorCode(enum.IntEnum):
    """enum torus_error_code. A code that is missing here is passed as a number."""

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
    """What libtorus reports. `code`: an ErrorCode."""

    def __init__(self, text, code):
        super().__init__(text)
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = code
