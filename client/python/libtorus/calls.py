"""Operations under way."""

from .errors import ErrorCode
from .library import Error, library, raise_error


class Call:
    """An operation under way, from Group.start_X()."""

    def __init__(self, group, pointer, result, kept):
        self._group, self._pointer, self._result = group, pointer, result
        self._kept = kept  # keeps the arrays alive that the library still uses
        self._error = None
        group._calls.add(self)

    def done(self):
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

    def wait(self):
        """Waits until the call has ended, and returns its result. Raises TorusError if the call has failed."""
        while not self.done():
            self._group._poll.poll()
        if self._error is not None:
            raise_error(self._error)
        return self._result()

    def _forget(self):
        self._pointer = self._kept = None
        self._group._calls.discard(self)

    def _give_up(self):
        self._error = Error(ErrorCode.CANCELLED, b'the group has been closed')
        self._forget()
