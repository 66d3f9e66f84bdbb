#!/usr/bin/python3
"""Brings up a torus of torusd daemons on this machine, in Mininet or on 127.0.0.1.

As a program:     sudo topo/torus.py 4x8 --bw 20
                  topo/torus.py 4x4 --loopback --run 'torusctl exchange --algorithm at2'
For Mininet's mn: mn --custom topo/torus.py --topo torus,4,8 --link tc,bw=20
"""

import os
import sys

# Modules compiled by root with sudo would be files in the user's clone that the user cannot remove.
sys.dont_write_bytecode |= 'SUDO_UID' in os.environ
# mn executes this text without __file__.
sys.path.insert(0, os.path.dirname(os.path.realpath(sys._getframe().f_code.co_filename)))

if __name__ == '__main__':
    from torus_net.launch import main
    sys.exit(main())
else:
    from torus_net.mn_custom import CLI, topos, validate  # noqa: F401 (mn looks for these names)
