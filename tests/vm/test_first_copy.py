"""README's first copy on four virtual machines."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from bare.image import make_bare_image
from support.first_copy import BUNDLE, CABLES, NAMES, PACKAGE, make_first_copy
from test_bare_machines import Cluster, pytestmark  # noqa: F401
from torus_net import CHECKOUT
from torus_net.guest_image import default_cache


@pytest.fixture(scope='module')
def bundle():
    """The folder for machines without a network, in $TORUS_PACKAGES, or made now."""
    if os.environ.get('TORUS_PACKAGES'):
        return Path(os.environ['TORUS_PACKAGES']) / BUNDLE
    subprocess.run([CHECKOUT / PACKAGE.split()[0], *PACKAGE.split()[1:]], check=True, stdout=subprocess.DEVNULL)
    return CHECKOUT / 'build' / 'packages' / BUNDLE


@pytest.fixture
def ring(bundle):
    image = make_bare_image([], default_cache(), print, [bundle])
    with tempfile.TemporaryDirectory(prefix='torus-first-') as folder:
        built = Cluster(NAMES, 2, folder, CABLES, image)
        try:
            yield built
        finally:
            built.close()


def test_the_first_copy(ring):
    for name in NAMES[1:]:
        ring[name].run(f'rm -r {BUNDLE}')
    make_first_copy(ring, 'silence_ms = 5000')  # machines that share processors
