"""Owners of the library's groups and memory, which free them when the last reference is gone."""

import threading

from .library import GROUP, Error, library, raise_error


def new_group(function, *arguments, parent=None):
    """Calls a function of the library that stores a new group, and returns the handle of the group.

    The function waits for other members and cannot be interrupted by a signal, so it runs in a thread. After Ctrl-C
    the thread continues, and the group is closed when its handle is dropped."""
    pointer, error, done = GROUP(), Error(), []

    def wait():
        if function(*arguments, pointer, error) == 0:
            done.append(Handle(pointer, parent))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join()
    if not done:
        raise_error(error)
    return done.pop()


class Handle:
    """Owns a group of the library. Its Group, its parts and arrays in its memory refer to it; the group is closed
    when the last of these references is gone."""

    def __init__(self, pointer, parent=None):
        self.pointer, self.parent = pointer, parent
        self.calls_given_up = False  # abandoned calls may use memory until the group is closed

    def give_up_calls(self):
        self.calls_given_up = True
        if self.parent is not None:
            self.parent.give_up_calls()

    def is_open(self):
        """Python may drop a group before its parts and memory, if references make a circle. Closing the group frees them."""
        return bool(self.pointer) and (self.parent is None or self.parent.is_open())

    def __del__(self, close=library.torus_group_close):
        was_open, pointer, self.pointer = self.is_open(), self.pointer, None
        if was_open:
            close(pointer)


class Memory:
    """Owns memory of a group. The memory is freed when no array uses it any more, or with the group."""

    def __init__(self, handle, size):
        error = Error()
        self.handle = handle
        self.address = library.torus_memory_new(handle.pointer, size, error)
        if not self.address:
            raise_error(error)

    def __del__(self, free=library.torus_memory_free):
        if self.address and self.handle.is_open() and not self.handle.calls_given_up:
            free(self.handle.pointer, self.address)
