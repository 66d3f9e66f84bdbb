"""The Python modules of scripts/reproduce."""

import sys

import pytest
from torus_net import CHECKOUT


@pytest.fixture(scope='module')
def reproduction():
    """Lets `import reproduction` find them."""
    sys.path.insert(0, str(CHECKOUT / 'scripts'))
    yield
    sys.path.remove(str(CHECKOUT / 'scripts'))
