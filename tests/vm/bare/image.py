"""The disk image of bare machines: a minimal Debian with systemd, ssh, MPICH and the packages of this project. Parts are
kept in a cache folder under names that contain a digest of what they were made from."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from torus_net import guest_image
from torus_net.process import TorusError

RELEASE = 'bookworm'
INCLUDE = ('systemd,systemd-sysv,udev,dbus,kmod,iproute2,iputils-ping,procps,openssh-server,mpich,busybox-static,'
           'libuv1,libprotobuf-c1,libsodium23,libjansson4,libxxhash0,libexpat1,libmicrohttpd12,libmnl0,'
           'libncursesw6,adduser')
BOOT_MODULES = ('virtio_pci', 'virtio_blk', 'virtio_console', 'virtio_net', 'ext4')
DISK_MIB = 1024
FILES = Path(__file__).with_name('files')

BOOT = '''#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /new
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*; do /bin/busybox insmod "$module"; done
until /bin/busybox mount -t ext4 /dev/vda /new 2>/dev/null; do /bin/busybox usleep 10000; done
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new /lib/systemd/systemd
'''


class BareImage:
    """kernel, initramfs, disk: paths. The disk must not be changed: machines write to overlays. key: the private key with
    which every machine's root may log in at every other one."""

    def __init__(self, kernel, initramfs, disk):
        self.kernel, self.initramfs, self.disk = kernel, initramfs, disk


def make_bare_image(packages, cache, say, folders=()):
    """The BareImage with these packages (paths of .deb files), and with copies of the folders in root's home."""
    cache = Path(cache) / 'bare'
    cache.mkdir(parents=True, exist_ok=True)
    kernel = _kernel(cache, say)
    initramfs = _initramfs(kernel, cache)
    base = _base(cache, say)
    digest = hashlib.sha256(Path(__file__).read_bytes() + base.name.encode() + kernel.name.encode())
    copied = sorted(path for folder in folders for path in Path(folder).rglob('*') if path.is_file())
    for path in [*sorted(FILES.iterdir()), *sorted(map(Path, packages), key=lambda path: path.name), *copied]:
        digest.update(path.name.encode() + path.read_bytes())
    kind = 'disk' if packages else 'empty'
    disk = cache / f'{kind}-{digest.hexdigest()[:16]}'
    if not disk.exists():
        say(f'building the disk of the bare machines in {cache}')
        for old in cache.glob(f'{kind}-*'):
            old.unlink()
        _disk(base, kernel, packages, folders, disk)
    return BareImage(kernel / 'vmlinuz', initramfs, disk)


def _kernel(cache, say):
    """A folder with vmlinuz, modules/ for the boot in their order, and all modules below lib/."""
    found = sorted(cache.glob('kernel-*'))
    if found:
        return found[-1]
    say('downloading the kernel of the bare machines')
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        temporary = Path(temporary)
        package = guest_image.fetch_kernel_package(temporary)
        _run('dpkg-deb', '-x', str(package), str(temporary / 'kernel'))
        kernel = temporary / 'kernel'
        image, = (kernel / 'boot').glob('vmlinuz-*')
        release = image.name.partition('-')[2]
        image.rename(kernel / 'vmlinuz')
        (kernel / 'release').write_text(release)
        (kernel / 'modules').mkdir()
        folder = kernel / 'lib' / 'modules' / release
        built_in = {Path(line).stem for line in (folder / 'modules.builtin').read_text().split()}
        chosen = guest_image.modules_in_order(folder, [name for name in BOOT_MODULES if name not in built_in])
        for number, module in enumerate(chosen):
            shutil.copyfile(module, kernel / 'modules' / f'{number:02d}-{module.name}')
        return kernel.rename(cache / f'kernel-{release}')


def _initramfs(kernel, cache):
    path = cache / f'initramfs-{kernel.name}'
    files = {'bin/busybox': guest_image.find_tool('busybox', 'busybox-static').read_bytes(),
             'init': BOOT.encode()}
    files.update({f'modules/{module.name}': module.read_bytes()
                  for module in sorted((kernel / 'modules').iterdir())})
    path.write_bytes(guest_image.archive(files, {}))
    return path


def _base(cache, say):
    """An archive of the Debian system without our packages."""
    path = cache / f'base-{hashlib.sha256(INCLUDE.encode()).hexdigest()[:16]}.tar'
    if not path.exists():
        if not shutil.which('mmdebstrap'):
            raise TorusError('mmdebstrap is missing (Debian: apt-get install mmdebstrap)')
        say(f'downloading the Debian system of the bare machines to {path}')
        new = path.with_suffix('.new.tar')
        _run('mmdebstrap', '--variant=apt', f'--include={INCLUDE}', RELEASE, str(new))
        new.rename(path)
    return path


def _disk(base, kernel, packages, folders, disk):
    with tempfile.TemporaryDirectory(dir=disk.parent) as root:
        root = Path(root)
        root.chmod(0o755)
        _run('tar', '-x', '-f', str(base), '-C', str(root))
        shutil.copytree(kernel / 'lib' / 'modules', root / 'lib' / 'modules', dirs_exist_ok=True)
        _run('chroot', str(root), 'depmod', (kernel / 'release').read_text())
        _add_packages(root, packages)
        _add_own_files(root)
        for folder in folders:
            shutil.copytree(folder, root / 'root' / Path(folder).name)
        new = disk.with_suffix('.new')
        _run('mke2fs', '-q', '-t', 'ext4', '-O', '^has_journal', '-d', str(root), str(new), f'{DISK_MIB}M')
        new.rename(disk)


def _add_packages(root, packages):
    if not packages:
        return
    folder = root / 'tmp' / 'packages'
    folder.mkdir()
    for package in packages:
        shutil.copy(package, folder)
    _run('chroot', str(root), 'sh', '-c',
         'DEBIAN_FRONTEND=noninteractive dpkg -i /tmp/packages/*.deb')
    shutil.rmtree(folder)


def _add_own_files(root):
    """The shell for the tests, root's ssh key, and nothing that a real machine would not have either."""
    shutil.copy(FILES / 'test-shell', root / 'usr/local/bin/test-shell')
    shutil.copy(FILES / 'test-shell.service', root / 'etc/systemd/system')
    wants = root / 'etc/systemd/system/multi-user.target.wants'
    wants.mkdir(parents=True, exist_ok=True)
    (wants / 'test-shell.service').symlink_to('/etc/systemd/system/test-shell.service')
    ssh = root / 'root/.ssh'
    ssh.mkdir(mode=0o700, exist_ok=True)
    _run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', str(ssh / 'id_ed25519'))
    shutil.copy(ssh / 'id_ed25519.pub', ssh / 'authorized_keys')
    (ssh / 'config').write_text('StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n')
    for unit in ('apt-daily.timer', 'apt-daily-upgrade.timer', 'man-db.timer', 'dpkg-db-backup.timer',
                 'e2scrub_all.timer', 'fstrim.timer', 'getty@tty1.service', 'serial-getty@ttyS0.service'):
        link = root / 'etc/systemd/system' / unit
        if not link.exists():
            os.symlink('/dev/null', link)
    (root / 'etc/fstab').write_text('')
    (root / 'etc/machine-id').write_text('')  # each machine makes its own at its first boot


def _run(*argv):
    result = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode:
        raise TorusError(f'{" ".join(argv[:4])} ...: {(result.stderr or result.stdout).strip()[-2000:]}')
    return result.stdout
