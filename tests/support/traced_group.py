"""A program on every node that makes ten calls, and sleeps before each of them: ARGV[2] seconds at node ARGV[1]."""

import sys
import time

import libtorus
import numpy as np

late, pause = int(sys.argv[1]), float(sys.argv[2])
with libtorus.Group() as g:
    blocks = np.zeros((g.size, 20000), dtype='uint8')
    for _ in range(5):
        if g.rank == late:
            time.sleep(pause)
        g.alltoall(blocks)
        if g.rank == late:
            time.sleep(pause)
        g.allreduce(np.float64(1))
    row = g.part(0)
    row.alltoall(np.zeros((row.size, 100), dtype='uint8'))
