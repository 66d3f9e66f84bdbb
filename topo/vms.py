#!/usr/bin/python3
"""Brings up a torus of torusd daemons, each in its own virtual machine. Use scripts/vm-up, which
builds what this needs."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

if __name__ == '__main__':
    from torus_net.vm_launch import main
    sys.exit(main())
