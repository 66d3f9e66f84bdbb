"""What the help of torusctl lists."""

import re
import subprocess

from torus_net import find_program


def printed(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def commands():
    listed = printed(find_program('torusctl'), 'help').partition('\noptions of all commands:\n')[0]
    return re.findall(r'^  ([a-z-]+)', listed, re.M)
