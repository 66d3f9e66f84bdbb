"""Root file systems in which packages are installed."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / 'build' / 'packaging'
# What tests use besides what the packages depend on. systemd checks units; a compiler uses libtorus-dev.
TOOLS = ('gcc', 'libc6-dev', 'pkgconf', 'systemd')
MOUNTS = ('mount',)  # commands begin with it
ENVIRONMENT = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C.UTF-8', 'HOME': '/root',
               'DEBIAN_FRONTEND': 'noninteractive'}
# Written by dpkg and others whatever is installed.
IGNORED = re.compile(r'/(proc|sys|dev|tmp|run)/|/var/(log|cache)/|/var/lib/dpkg/[^/]*$|/var/lib/dpkg/triggers/|'
                     r'/etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|/etc/\.pwd\.lock$|/etc/ld\.so\.cache$')
# Commands begin in a root that is a mount point, as that of a machine is (Mininet remounts it), so chroot is not enough.
# The first process is a shell, which waits for processes whose parents have ended.
MOUNT = '''
root=$2/merged
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -m 1777 "$root/run/lock"
mount --bind "$2/tmp" "$root/tmp"
shift 2
cd "$root"
pivot_root . mnt
exec chroot . sh -c 'umount -l /mnt && "$@"; exit $?' sh "$@"
'''


def obstacle():
    """Why packages cannot be tested here; None if they can."""
    if os.geteuid() != 0:
        return 'the packages are tested in root file systems: run as root'
    for program in 'dpkg-buildpackage', 'dh', 'mmdebstrap', 'lintian', 'qemu-aarch64-static':
        if not shutil.which(program):
            return f'{program} is not installed: the packages of the groups package and packages in scripts/packages.txt have it'
    return None


def field(deb, name):
    return subprocess.run(['dpkg-deb', '-f', deb, name], capture_output=True, text=True, check=True).stdout.strip()


def dependencies(debs):
    """The names of the packages that these depend on, without each other."""
    own = {field(deb, 'Package') for deb in debs}
    named = ','.join(field(deb, kind) for deb in debs for kind in ('Depends', 'Pre-Depends')).split(',')
    names = {re.split(r'[ (|:]', one.strip())[0] for one in named}
    return sorted(names - own - {''})


def sources():
    """Debian's sources of apt, as this machine has them."""
    command = ['apt-get', 'indextargets', '--format', 'deb $(SITE) $(RELEASE) $(COMPONENT)',
               'Identifier: Packages', 'Origin: Debian']
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if not listed:  # apt knows the origin of a source from its lists
        subprocess.run(['apt-get', '-q', 'update'], stdout=subprocess.DEVNULL, check=True)
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return '\n'.join(sorted(set(listed.splitlines()))) + '\n'


def apt_options():
    """How apt downloads, as this machine does: proxies, certificates, checks of dates. On one line."""
    listed = subprocess.run(['apt-config', 'dump', '--no-empty', '--format', '%f "%v";%n', 'Acquire'],
                            capture_output=True, text=True, check=True).stdout.splitlines()
    listed += [f'Acquire::{scheme}::Proxy "{os.environ[f"{scheme}_proxy"]}";' for scheme in ('http', 'https')
               if os.environ.get(f'{scheme}_proxy')]
    return ' '.join(listed)


def suite():
    return re.search(r'^VERSION_CODENAME=(\w+)', Path('/etc/os-release').read_text(), re.M)[1]


@contextmanager
def alone(folder):
    """One process at a time makes a folder; those that have waited find it made."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f'{folder.name}.lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(folder, names, *options):
    """Makes a root file system with packages of Debian, unless the folder has one made from the same ones."""
    options = [f'--aptopt={apt_options()}', *options]
    digest = hashlib.sha256(repr((sources(), sorted(names), options)).encode()).hexdigest()
    stamp = folder.with_name(f'{folder.name}.made')
    with alone(folder):
        if stamp.exists() and stamp.read_text() == digest:
            return folder
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(['mmdebstrap', '--quiet', '--mode=root', f'--include={",".join(names)}', *options, suite(),
                        folder, '-'], input=sources(), text=True, check=True)
        stamp.write_text(digest)
    return folder


def required_root(folder, debs, tools=()):
    return make(folder, [*dependencies(debs), *tools], '--variant=apt', '--aptopt=APT::Install-Recommends "false"')


def base_root(folder, debs):
    return required_root(folder, debs, TOOLS)


def bare_root(folder, *names):
    """Debian's minimal packages, those with these names, and the certificates that an administrator has added."""
    added = Path('/usr/local/share/ca-certificates')
    trust = [f'--customize-hook=copy-in {added} {added.parent}',
             '--customize-hook=chroot "$1" update-ca-certificates >/dev/null 2>&1']
    return make(folder, names, '--variant=minbase', *(trust if added.is_dir() else []))


def foreign_root(folder, architecture, packages):
    """A folder with packages of another architecture, and their libraries, unpacked: nothing in it has been run."""
    debs = [deb for name, deb in packages.items() if name != 'torus-emulator']
    names = [name for name in dependencies(debs) if name != 'adduser']
    make(folder, names, f'--architectures={architecture}', '--variant=extract')
    for deb in debs:
        subprocess.run(['dpkg-deb', '-x', deb, folder], check=True)
    return folder


class Root:
    """A root file system that is made from another one, and leaves that one as it is. Each command has mounts and
    processes of its own, so nothing remains mounted or running."""

    def __init__(self, base, folder):
        self.base, self.folder = base, Path(tempfile.mkdtemp(prefix='root-', dir=folder))

    def __enter__(self):
        for name in 'upper', 'work', 'merged', 'tmp':
            (self.folder / name).mkdir()
        (self.folder / 'tmp').chmod(0o1777)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def start(self, *command, **options):
        """Runs a command. Returns what subprocess.run() returns."""
        return subprocess.run(['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', MOUNT, 'sh',
                               self.base, self.folder, *command], text=True, env=ENVIRONMENT, **options)

    def run(self, *command):
        """Runs a command, which must succeed. Returns its standard output."""
        done = self.start(*command, capture_output=True)
        text = f'{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}'
        assert done.returncode == 0, text
        return done.stdout

    def shell(self, script):
        return self.run('sh', '-euc', script)

    def install(self, *debs, command='dpkg --install'):
        (self.folder / 'upper' / 'root').mkdir(mode=0o700, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self.folder / 'upper' / 'root'))
        for deb in debs:
            shutil.copy(deb, folder)
        self.shell(f'{command} /root/{folder.name}/*.deb && rm -r /root/{folder.name}')

    def install_with_apt(self, *debs):
        """apt finds the requirements of the packages, which are installed already: there are no lists of others."""
        self.install(*debs, command='apt-get -q -y -o APT::Sandbox::User=root install')

    def files(self):
        """{path: what it is, who has it} of all files that packages can leave."""
        found = self.run('find', '/', '-xdev', '-printf', '%p\t%y %u %g %m %l\n').splitlines()
        return dict(line.split('\t') for line in found if not IGNORED.search(line.partition('\t')[0]))

    def text(self, path):
        return self.run('cat', path)
