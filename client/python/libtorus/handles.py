"""Groups of the library and their memory, which live as long as something refers to them."""

import threading

from .library import GROUP, Error, library, raise_error


def new_group(function, *arguments, parent=None):
    """The handle of a group that the function stores. It waits for other members in a thread, since a
    signal cannot interrupt it: after Ctrl-C nobody takes the handle, and the group is closed."""
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
    """A group of the library, closed when nothing refers to it any more: its Group, its parts, arrays in
    its memory, or calls under way."""

    def __init__(self, pointer, parent=None):
        self.pointer, self.parent = pointer, parent
        self.calls_given_up = False  # which may use memory until the group is closed

    def give_up_calls(self):
        self.calls_given_up = True
        if self.parent is not None:
            self.parent.give_up_calls()

    def __del__(self, close=library.torus_group_close):
        pointer, self.pointer = self.pointer, None
        close(pointer)


class Memory:
    """Memory of a group, freed when no array uses it any more, or with the group."""

    def __init__(self, handle, size):
        error = Error()
        self.handle = handle
        self.address = library.torus_memory_new(handle.pointer, size, error)
        if not self.address:
            raise_error(error)

    def __del__(self, free=library.torus_memory_free):
        if self.address and self.handle.pointer and not self.handle.calls_given_up:
            free(self.handle.pointer, self.address)
