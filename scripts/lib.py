"""For the Python scripts in this folder: what lib.sh does for the others."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
BUILD = ('. "$1"; shift; [[ $# -eq 0 ]] || install_packages "$@"; '
         'build "$checkout/build" programs -DCMAKE_BUILD_TYPE=RelWithDebInfo')


def add_build_options(parser):
    parser.add_argument('--bin', metavar='DIR', default=os.environ.get('TORUS_BIN'),
                        help='use the programs in this folder instead of building them (default: $TORUS_BIN)')
    parser.add_argument('--no-install', action='store_true', help='do not install Debian packages')


def prepare(given, *groups, launcher='torus.py', loopback=False):
    """Sets given.bin to the folder with the programs. Unless the user has named it, installs the packages of the groups
    (packages.txt), and builds. A torus that the launcher in topo/ refuses ends the script before."""
    torus = [given.dims, *(['--bw', given.bw] if given.bw else []), *(['--loopback'] if loopback else [])]
    done = subprocess.run([CHECKOUT / 'topo' / launcher, '--check-options', *torus])
    if done.returncode:
        sys.exit(done.returncode)
    if given.bin:
        return
    done = subprocess.run(['bash', '-eu', '-o', 'pipefail', '-c', BUILD, sys.argv[0], CHECKOUT / 'scripts' / 'lib.sh',
                           *([] if given.no_install else groups)])
    if done.returncode:
        sys.exit(done.returncode)
    given.bin = str(CHECKOUT / 'build')
