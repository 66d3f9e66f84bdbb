"""Running kernels in qemu: whether that is possible here, under which accelerator, and the options
that all virtual machines have in common."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from . import interrupts
from .guest_image import debian_package
from .patience import Patience, communicate

QEMU = 'qemu-system-x86_64'
RAM_MIB = 128
LEAST_RAM_MIB = 112
OVERHEAD_MIB = 60         # about what a qemu process needs besides the machine's RAM
TRANSLATED_MIB = 24       # buffer for translated code, per machine
TRIAL_SECONDS = 6         # in which a kernel must boot under kvm in the test boot
CONSOLE = ('console=ttyS0 quiet loglevel=4 panic=-1 reboot=t no_timer_check nokaslr mitigations=off '
           'init_on_alloc=0 ipv6.disable=1 random.trust_cpu=on cryptomgr.notests=1 '
           'audit=0 apparmor=0 nowatchdog rdinit=/init')
# On a busy host the TSC of an emulated processor is measured wrongly, and clocks run several times
# too fast; the emulated HPET needs no measurement.
CLOCK = {'tcg': ' tsc=unstable clocksource=hpet', 'kvm': ''}


def vm_obstacle():
    """Why virtual machines cannot be started here, as text, or None if they can."""
    if not shutil.which(QEMU):
        return f'{QEMU} is missing {debian_package("qemu-system-x86")}'
    if not shutil.which('busybox'):
        return f'busybox is missing {debian_package("busybox-static")}'
    return None


def available_memory():
    """Bytes of memory available on this machine, or in this control group if it has less."""
    for line in Path('/proc/meminfo').read_text().splitlines():
        if line.startswith('MemAvailable:'):
            available = int(line.split()[1]) * 1024
    try:
        group = Path('/sys/fs/cgroup')
        limit = (group / 'memory.max').read_text().strip()
        if limit != 'max':
            used = int((group / 'memory.current').read_text())
            available = min(available, int(limit) - used)
    except (OSError, ValueError):
        pass
    return available


def choose_accelerator(wanted, image, cache, say):
    """"kvm" if a kernel boots under it, else "tcg". The result is kept until this machine reboots. A
    device file, or an emulator that starts, is not enough to know."""
    if wanted != 'auto':
        return wanted
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return 'tcg'
    boot = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    known = Path(cache) / 'kvm.json'
    key = [boot, image.release, os.stat(shutil.which(QEMU)).st_mtime_ns]
    try:
        with open(known, 'rb') as file:
            remembered = json.loads(file.read(1000))
        if remembered['key'] == key:
            return remembered['accelerator']
    except (OSError, ValueError, KeyError, TypeError):
        pass
    say(f'testing whether a kernel boots under kvm (at most {TRIAL_SECONDS} s; the result is kept '
        'until this machine reboots)')
    result = 'kvm' if kernel_runs('kvm', image) else 'tcg'
    known.write_text(json.dumps({'key': key, 'accelerator': result}))
    return result


def kernel_runs(accelerator, image, seconds=TRIAL_SECONDS):
    """Whether a kernel that runs under an accelerator reaches its first program."""
    command = [QEMU, *machine_arguments(accelerator, RAM_MIB, image), '-serial', 'stdio',
               '-append', f'{CONSOLE} torus.trial']
    process = None
    try:
        with interrupts.held():
            process = subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', *command], text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       errors='replace')
        return 'torus: it runs' in communicate(process, Patience(seconds))[0]
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process is not None:
            process.kill()
            process.communicate()


def machine_arguments(accelerator, ram, image):
    """The options that all virtual machines have in common: only the named devices exist."""
    accelerators = {'tcg': f'tcg,thread=single,tb-size={TRANSLATED_MIB}', 'kvm': 'kvm'}
    return ['-accel', accelerators[accelerator], '-cpu', 'host' if accelerator == 'kvm' else 'max',
            '-machine', 'pc,smm=off,graphics=off,vmport=off,usb=off', '-bios', 'qboot.rom',
            '-smp', '1', '-m', str(ram), '-nodefaults', '-no-user-config', '-display', 'none',
            '-no-reboot',
            '-kernel', str(image.kernel), '-initrd', str(image.initramfs)]
