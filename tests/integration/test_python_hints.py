"""The type hints of client/python/libtorus: each public function has them, and they are those of its results."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import typing

import pytest
from torus_net import CHECKOUT

pytestmark = pytest.mark.full

pytest.importorskip('numpy')
FOLDER = CHECKOUT / 'client' / 'python'
# What is checked, and the type that it has; lines with an error have the error instead.
PROGRAM = '''\
import libtorus
import numpy as np

group = libtorus.Group('name', timeout=3, on_failure='wait')
blocks = np.full((group.size, 10), group.rank, dtype=np.float64)
reveal_type(group.alltoall(blocks))                    # ndarray[Any, dtype[Any]]
reveal_type(group.start_allgather(3.5))                # Call[ndarray[Any, dtype[Any]]]
reveal_type(group.alltoallv([blocks], [np.int64(1)]))  # list[ndarray[Any, dtype[Any]]]
reveal_type(group.start_barrier().wait())              # None
reveal_type(group.part(0).nodes)                       # tuple[int, ...]
reveal_type(libtorus.__version__)                      # str
group.allgather(libtorus.IN_PLACE, out=blocks)
group.array((3, 4), np.int32)
group.allgather(1, outt=2)                             # Unexpected keyword argument "outt"
group.set_timeout('3')                                 # incompatible type "str"
group.broadcast([1, 2])
group.part('0')                                        # incompatible type "str"
'''


@pytest.fixture
def libtorus(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import libtorus
    yield libtorus
    for name in [name for name in sys.modules if name.partition('.')[0] == 'libtorus']:
        del sys.modules[name]


def test_every_public_function_has_hints(libtorus):
    checked = 0
    for kind in libtorus.Group, libtorus.Call, libtorus.TorusError:
        for name, member in vars(kind).items():
            function = member.fget if isinstance(member, property) else member
            if not inspect.isfunction(function) or name.startswith('_') and name != '__init__':
                continue
            hints = typing.get_type_hints(function)
            assert hints.keys() == {*inspect.signature(function).parameters, 'return'} - {'self'}, name
            checked += 1
    assert checked > 30


def test_what_mypy_says(tmp_path):
    if not shutil.which('mypy'):
        pytest.skip('mypy is not installed')
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM)
    said = subprocess.run(['mypy', '--strict', '--follow-imports=silent', '--cache-dir', tmp_path / 'cache', program],
                          capture_output=True, text=True, env={**os.environ, 'MYPYPATH': str(FOLDER)}).stdout
    found = {int(line): re.sub(r'\w+\.(?=\w)', '', text)
             for line, text in re.findall(r'program\.py:(\d+): (?:note|error): (.*)', said)}
    expected = {number: line.partition('# ')[2] for number, line in enumerate(PROGRAM.splitlines(), 1) if '# ' in line}
    assert found.keys() == expected.keys(), said
    for number, text in expected.items():
        assert text in found[number] or f'"{text}"' in found[number], said
