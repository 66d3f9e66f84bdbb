"""The Python modules of scripts/reproduce."""

import re
import sys

import pytest
from torus_net import CHECKOUT


@pytest.fixture(scope='module')
def reproduction():
    """Lets `import reproduction` find them."""
    sys.path.insert(0, str(CHECKOUT / 'scripts'))
    yield
    sys.path.remove(str(CHECKOUT / 'scripts'))


def drawings():
    """The names of all drawings, as their modules write them."""
    return {name for path in (CHECKOUT / 'scripts' / 'reproduction' / 'drawings').glob('*.py')
            for name in re.findall(r"Drawing\(\s*'([\w-]+)'", path.read_text())}
