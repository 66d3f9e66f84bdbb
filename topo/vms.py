#!/usr/bin/python3
"""Brings up a torus of torusd daemons, each on a virtual machine of its own. scripts/vm-up builds
what is needed first."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

if __name__ == '__main__':
    from torus_net.vm_launch import main
    sys.exit(main())
