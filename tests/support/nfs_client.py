"""An NFS client in user space (libnfs), for kernels without one. Run as a program: nfs_client.py SERVER EXPORT

Opens a file once, and then writes blocks to it and reads them back until its standard input ends. Prints a line for
each block.
"""

import ctypes
import os
import selectors
import sys

LIBRARY = 'libnfs.so.13'
BLOCK, BLOCKS = 1024, 64  # libnfs 4 cannot write much more at once by NFS 4
NFS_VERSION = 4


class Client:
    def __init__(self, server, export):
        self.nfs = ctypes.CDLL(LIBRARY)
        self.nfs.nfs_init_context.restype = ctypes.c_void_p
        self.nfs.nfs_get_error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.nfs.nfs_init_context())
        self.file = ctypes.c_void_p()
        self._must(self.nfs.nfs_set_version(self.context, NFS_VERSION))
        self._must(self.nfs.nfs_mount(self.context, server.encode(), export.encode()))
        self._must(self.nfs.nfs_open(self.context, b'/data', os.O_RDWR | os.O_CREAT, ctypes.byref(self.file)))

    def _must(self, code):
        if code < 0:
            sys.exit(f'nfs_client: {self.nfs.nfs_get_error(self.context)}')
        return code

    def write_and_read(self, number):
        at = ctypes.c_uint64(number % BLOCKS * BLOCK)
        data, found = number.to_bytes(8, 'big') * (BLOCK // 8), ctypes.create_string_buffer(BLOCK)
        size = ctypes.c_uint64(BLOCK)
        if self._must(self.nfs.nfs_pwrite(self.context, self.file, at, size, data)) != BLOCK:
            sys.exit('nfs_client: a block was not written whole')
        self._must(self.nfs.nfs_fsync(self.context, self.file))
        if self._must(self.nfs.nfs_pread(self.context, self.file, at, size, found)) != BLOCK or found.raw != data:
            sys.exit('nfs_client: a block is not as it was written')


def main():
    client, number = Client(*sys.argv[1:]), 0
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        while not selector.select(0):
            client.write_and_read(number)
            print(number, flush=True)
            number += 1


if __name__ == '__main__':
    main()
