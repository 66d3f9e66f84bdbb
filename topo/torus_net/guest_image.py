"""The boot files of virtual machines: Debian's cloud kernel and an initramfs, both kept in a cache folder.

The kernel's package is downloaded and unpacked, not installed. The initramfs contains the project's
programs, those of topo/guest, busybox, tc, their shared libraries and the required kernel modules.
Its name contains a digest of its contents, so it is rebuilt exactly when a part has changed.
"""

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from .process import CHECKOUT, TorusError

GUEST = CHECKOUT / 'topo' / 'guest'
KERNEL_PACKAGE = 'linux-image-cloud-amd64'  # depends on the package with the kernel
MODULES = ('virtio_pci', 'virtio_net', 'virtio_console', 'sch_htb', 'sch_tbf')
COMPILE = ('-std=gnu11', '-D_GNU_SOURCE', '-O2', '-Wall', '-Wextra', '-Wconversion', '-Wshadow')
KEEP_SECONDS = 24 * 3600  # how long an unused image is kept


def default_cache():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return Path(os.environ.get('TORUS_VM_CACHE') or Path(base) / 'torusd' / 'vm')


def debian_package(name):
    """How to install what is missing, for messages."""
    return f'(Debian: apt-get install {name})'


class Image:
    """kernel and initramfs: the paths of both; release: the kernel's, as in "6.1.0-56-cloud-amd64"."""

    def __init__(self, kernel, initramfs, release):
        self.kernel = kernel
        self.initramfs = initramfs
        self.release = release


def guest_file(path):
    """Where a machine has a file that make_image() was given."""
    return f'/etc/torusd/{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}'


def make_image(programs, cache, say, files=()):
    """The Image with the given programs and files (paths), built unless it is in the cache."""
    cache = Path(cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache):
            kernel = _kernel(cache, say)
            initramfs = _initramfs(programs, files, kernel, cache, say)
    except OSError as e:
        raise TorusError(f'cannot create the image of virtual machines in {cache}: {e}') from e
    return Image(kernel / 'vmlinuz', initramfs, (kernel / 'release').read_text().strip())


@contextmanager
def _locked(cache):
    """Holds a lock, so that launchers that start at the same time do the work only once."""
    with open(cache / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- the kernel ---

def _kernel(cache, say):
    """A folder with vmlinuz, release and modules/ (in the order in which they must be loaded)."""
    wanted = hashlib.sha256(' '.join(MODULES).encode()).hexdigest()[:8]
    found = sorted(cache.glob(f'kernel-*-{wanted}'), key=os.path.getmtime)
    if found:
        return found[-1]
    say(f'downloading Debian\'s kernel ({KERNEL_PACKAGE}) to {cache}')
    with tempfile.TemporaryDirectory(prefix='new-', dir=cache) as temporary:
        temporary = Path(temporary)
        package = fetch_kernel_package(temporary)
        _run('dpkg-deb', '-x', str(package), str(temporary / 'all'))
        images = list((temporary / 'all' / 'boot').glob('vmlinuz-*'))
        if len(images) != 1:
            raise TorusError(f'{package.name} contains {len(images)} kernels instead of one')
        release = images[0].name.partition('-')[2]
        result = temporary / 'kernel'
        (result / 'modules').mkdir(parents=True)
        shutil.copyfile(images[0], result / 'vmlinuz')
        (result / 'release').write_text(f'{release}\n')
        for number, module in enumerate(modules_in_order(temporary / 'all' / 'lib' / 'modules' / release, MODULES)):
            shutil.copyfile(module, result / 'modules' / f'{number:02d}-{module.name}')
        return result.rename(cache / f'kernel-{release}-{wanted}')


def fetch_kernel_package(folder):
    advice = ('Virtual machines boot the kernel of Debian\'s package '
              f'{KERNEL_PACKAGE}: check the package list (apt-get update) and the network')
    try:
        said = _run('apt-cache', 'depends', '--important', KERNEL_PACKAGE)
        named = re.findall(r'Depends: (linux-image-\S+)', said)
        if not named:
            raise TorusError(f'apt does not know the package {KERNEL_PACKAGE}')
        folder.chmod(0o755)  # as root, apt-get downloads as its own user if that user can write here
        _run('apt-get', 'download', '-q', named[0], cwd=folder)
    except TorusError as e:
        raise TorusError(f'cannot download the kernel package: {e}\n{advice}') from e
    found = list(folder.glob('linux-image-*.deb'))
    if not found:
        raise TorusError(f'cannot download the kernel package: apt-get download {named[0]} left no '
                         f'file\n{advice}')
    return found[0]


def modules_in_order(folder, names):
    """The files of the named modules and of the modules that they need. Each module comes after those that it needs."""
    files = {path.name[:-3].replace('-', '_'): path for path in folder.rglob('*.ko')}
    order = []

    def add(name):
        if name not in files:
            raise TorusError(f'the kernel package does not contain the module {name}.ko')
        needs = re.search(rb'\0depends=([^\0]*)\0', files[name].read_bytes())
        for other in needs[1].decode().split(',') if needs and needs[1] else ():
            add(other)
        if name not in order:
            order.append(name)

    for name in names:
        add(name)
    return [files[name] for name in order]


# --- the initramfs ---

def _initramfs(programs, more, kernel, cache, say):
    busybox, tc = find_tool('busybox', 'busybox-static'), find_tool('tc', 'iproute2')
    own = {name: _compiled(name, cache, say) for name in ('bridge', 'capture')}
    files = {'init': GUEST / 'init', 'bin/shell': GUEST / 'shell', 'bin/busybox': busybox,
             'sbin/tc': tc, **{f'bin/{name}': path for name, path in own.items()},
             **{f'bin/{os.path.basename(program)}': Path(program) for program in programs}}
    for path in list(files.values()):
        files.update(_libraries(path))
    for module in sorted((kernel / 'modules').iterdir()):
        files[f'modules/{module.name}'] = module
    files.update({guest_file(path).lstrip('/'): Path(path) for path in more})
    applets = [name for name in _run(str(busybox), '--list').split() if f'bin/{name}' not in files]
    contents = {name: _without_symbols(path) if _is_elf(path) and not name.startswith('modules/')
                else path.read_bytes() for name, path in sorted(files.items())}
    digest = hashlib.sha256(' '.join(applets).encode() + Path(__file__).read_bytes())
    for name, content in contents.items():
        digest.update(f'{name} {len(content)}\n'.encode() + content)
    path = cache / f'initramfs-{digest.hexdigest()[:24]}'
    if not path.exists():
        say(f'building the image of the virtual machines in {cache}')
        _remove_old(cache)
        packed = archive(contents, {f'bin/{name}': 'busybox' for name in applets
                                      if name != 'busybox'})
        _write_whole(path, packed)
    os.utime(path)
    return path


def find_tool(program, package):
    path = shutil.which(program, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')
    if not path:
        raise TorusError(f'{program} is missing {debian_package(package)}')
    return Path(path)


def _compiled(name, cache, say):
    """A program of topo/guest, compiled from the folder of its name."""
    folder = GUEST / name
    compiler = os.environ.get('CC') or 'cc'
    digest = hashlib.sha256(' '.join((compiler, *COMPILE)).encode())
    for path in sorted(folder.glob('*.[ch]')):
        digest.update(f'{path.name}\n'.encode() + path.read_bytes())
    path = cache / f'{name}-{digest.hexdigest()[:24]}'
    if not path.exists():
        if not shutil.which(compiler):
            raise TorusError(f'a C compiler is missing {debian_package("build-essential")}')
        say(f'compiling {folder.relative_to(CHECKOUT)}')
        new = path.with_suffix('.new')
        _run(compiler, *COMPILE, f'-I{CHECKOUT}', *map(str, sorted(folder.glob('*.c'))), '-o', str(new))
        new.rename(path)
    os.utime(path)
    return path


def bridge_program(cache, say):
    """The compiled bridge, which is built unless it is in the cache."""
    cache = Path(cache)
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache):
        return _compiled('bridge', cache, say)


def _is_elf(path):
    with open(path, 'rb') as file:
        return file.read(4) == b'\x7fELF'


def _without_symbols(path):
    """A program or library without debugging symbols, which would take memory of every machine, twice
    while it boots."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / 'stripped'
        _run('strip', '-o', str(stripped), str(path))  # comes with the compiler
        return stripped.read_bytes()


def _libraries(path):
    """The shared libraries of a program, and its loader, under the names that it looks for."""
    if not _is_elf(path):
        return {}
    result = subprocess.run(['ldd', str(path)], capture_output=True, text=True)
    found = re.findall(r'not found', result.stdout)
    if found:
        raise TorusError(f'{path} lacks shared libraries:\n{result.stdout}')
    return {name.lstrip('/'): Path(name) for name in
            re.findall(r'(?:=> )?(/\S+) \(0x', result.stdout)}


def archive(contents, links):
    """A cpio archive ("newc") of files and symbolic links, with the folders that they need."""
    parts = []

    def add(name, mode, content=b'', device=(0, 0)):
        encoded = name.encode() + b'\0'
        header = ''.join(f'{figure:08x}' for figure in (
            len(parts) + 1, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0))
        head = b'070701' + header.encode() + encoded
        parts.append(head + b'\0' * (-len(head) % 4) + content + b'\0' * (-len(content) % 4))

    folders = {str(parent) for name in [*contents, *links] for parent in Path(name).parents}
    for folder in sorted((folders | {'dev', 'proc', 'sys', 'tmp'}) - {'.'}):
        add(folder, stat.S_IFDIR | 0o755)
    add('dev/console', stat.S_IFCHR | 0o600, device=(5, 1))
    for name, content in contents.items():
        add(name, stat.S_IFREG | 0o755, content)
    for name, target in links.items():
        add(name, stat.S_IFLNK | 0o777, target.encode())
    add('TRAILER!!!', 0)
    return b''.join(parts)


def _write_whole(path, content):
    new = path.with_suffix('.new')
    new.write_bytes(content)
    new.rename(path)


def _remove_old(cache):
    """Removes images that were not used for a day. A running machine has read its image already, and a
    torus keeps a copy of its image in the folder of its run."""
    for path in [*cache.glob('initramfs-*'), *cache.glob('bridge-*'), *cache.glob('capture-*')]:
        if time.time() - path.stat().st_mtime > KEEP_SECONDS:
            path.unlink(missing_ok=True)


def _run(*argv, cwd=None):
    try:
        result = subprocess.run(argv, cwd=cwd, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise TorusError(f'{argv[0]} is missing; virtual machines need a Debian system') from None
    if result.returncode:
        raise TorusError(f'{" ".join(argv)}: {(result.stderr or result.stdout).strip()}')
    return result.stdout
