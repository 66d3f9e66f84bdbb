"""Operations under way."""

from __future__ import annotations

from typing import Any, Callable, Generic, Optional, TypeVar

from .errors import ErrorCode
from .library import Error, library, raise_error


Result = TypeVar('Result')


class Call(Generic[Result]):
    """An operation under way, from Group.start_X()."""

    def __init__(self, group: Any, pointer: Any, result: Callable[[], Result], kept: object) -> None:
        self._group, self._pointer, self._result = group, pointer, result
        self._kept = kept  # keeps the arrays alive that the library still uses
        self._error: Optional[Error] = None
        group._calls.add(self)

    def done(self) -> bool:
        """Returns whether the call has ended, without waiting. If the call has failed, wait() raises the error."""
        if self._pointer is None:
            return True
        error = Error()
        ended = library.torus_call_test(self._pointer, error)
        if ended == 0:
            return False
        if ended < 0:
            self._error = error
        self._forget()
        return True

    def wait(self) -> Result:
        """Waits until the call has ended, and returns its result. Raises TorusError if the call has failed."""
        while not self.done():
            self._group._poll.poll()
        if self._error is not None:
            raise_error(self._error)
        return self._result()

    def _forget(self) -> None:
        self._pointer = self._kept = None
        self._group._calls.discard(self)

    def _give_up(self) -> None:
        self._error = Error(ErrorCode.CANCELLED, b'the group has been closed')
        self._forget()
