# One of several processes that use a mounted Archive at once.
#
#   crowd.py NUMBER SECONDS LOAD
#
# LOAD `grow` mints and copies in as it likes; `steady` keeps as many items and files as there were.
# Before each operation it writes what it is about to do, and since when, to `at-NUMBER`, for
# whoever watches; at the end it prints how many operations it did, its longest one in seconds and
# which that was, and with which errors which of them were refused.
import errno, os, random, shutil, subprocess, sys, time

number, seconds, load = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
random.seed(number)
at = os.open('at-%d' % number, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
end, count, refused = time.time() + seconds, 0, set()
longest, slowest = 0, '-'
base = 'A/example.org/archive-a'


def items():
    return [base + '/' + year + '/' + date for year in os.listdir(base)
            for date in os.listdir(base + '/' + year)]


def either(item):
    """The same item, half of the time by its opaque name."""
    if random.random() < .5:
        return 'A/' + os.getxattr(item, 'user.ibi.ibip').decode()
    return item


def tool(*command):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # Much is told of what others change meanwhile; these are never others' doing. ESTALE is: whoever works
    # in a directory that is removed in the other tree may hear it in the place of ENOENT.
    bad = (b'Input/output', b'Transport endpoint', b'Cannot allocate', b'Invalid argument', b'Bad ')
    for line in done.stderr.splitlines():
        if any(words in line for words in bad):
            print('%s: %s' % (' '.join(command), line.decode(errors='replace')), file=sys.stderr)


def write(item, other):
    with open(item + '/doc/f%d' % random.randrange(5), 'w') as file:
        file.write('x' * random.randrange(100000))


def append(item, other):
    with open(item + '/doc/log-%d' % random.randrange(3), 'a') as file:
        file.write('line\n')
        if file.tell() > 10000:
            file.truncate(0)


def read(item, other):
    for name in os.listdir(item + '/doc'):
        path = item + '/doc/' + name
        if os.path.isfile(path):
            open(path, 'rb').read()


def unlinked(item, other):
    path = item + '/doc/u%d' % number
    with open(path, 'w+') as file:
        os.unlink(path)
        file.write('gone')
        file.seek(0)
        assert file.read() == 'gone'


def rename(item, other):
    os.rename(item + '/doc/f0', item + '/doc/f1')


def link(item, other):
    name = item + '/doc/h%d' % random.randrange(3)
    os.link(item + '/doc/f1', name)
    os.unlink(name)


def directories(item, other):
    os.makedirs(item + '/doc/a/b/c', exist_ok=True)
    name = item + '/doc/a/l%d' % random.randrange(4)
    os.symlink('../../../../../../x', name)
    os.readlink(name)
    os.unlink(name)


def tidy(item, other):
    shutil.rmtree(item + '/doc/a')


def attributes(item, other):
    path = item + '/doc'
    os.setxattr(path, 'user.note', b'x' * random.randrange(50))
    os.listxattr(path)
    os.chmod(path, random.choice((0o755, 0o775)))
    os.utime(path)


def edition(item, other):
    os.setxattr(item, 'user.ibi.nextedition', other[2:].encode())


def no_edition(item, other):
    os.unlink(item + '!')


def translation(item, other):
    os.setxattr(item, 'user.ibi.translation.pt', other[2:].encode())


def linked_translation(item, other):
    staged = os.path.dirname(item) + '/.tmp%d-%d' % (number, count)
    os.symlink('../' + other[2:], staged)
    try:
        os.rename(staged, item + '+(en)')
    except OSError:
        os.unlink(staged)
        raise


def no_translation(item, other):
    os.removexattr(item, 'user.ibi.translation.' + random.choice(('pt', 'en', 'fr')))


def metadata_text(item, other):
    with open(item + ':', 'w') as file:
        file.write('title: x%d\n' % count)


def sidecar(item, other):
    old = open(item + '/.ibi').read()
    with open(item + '/..ibi.Ab%04d' % (count % 10000), 'w') as file:
        file.write(old)
    os.rename(item + '/..ibi.Ab%04d' % (count % 10000), item + '/.ibi')


def no_sidecar(item, other):
    os.unlink(item + '/.ibi')


def modifiers(item, other):
    for tail in random.sample(('!', '+', ':', '!+', '!:', '+(pt)', '+(en)!', '!+(pt):'), 3):
        try:
            os.readlink(item + tail)
        except OSError as error:
            # A metadata text is no link.
            if error.errno not in (errno.ENOENT, errno.EINVAL, errno.ELOOP):
                raise
    for name in ('rep', 'state', 'lastedition'):
        os.getxattr(item, 'user.ibi.' + name)


def texts(item, other):
    open(item + ':(oai_dc)').read()
    open(item + '?GetFileList').read()


def walk(item, other):
    for _, _, names in os.walk(item):
        pass
    os.listdir(random.choice(('A', base, os.path.dirname(item))))


def other_case(item, other):
    assert os.readlink('A/EXAMPLE.org') == 'example.org'
    os.listdir('A/EXAMPLE.org/Archive-A')


def label(item, other):
    """A deposit under a label, which is then forgotten."""
    name = 'A/.mint/s%d-%d' % (number, count)
    os.makedirs(name + '/doc')
    open(name + '/doc/f', 'w').write('deposit')
    os.readlink('A/.mint/.s%d-%d' % (number, count))
    os.rmdir(name)


def mint_relation(item, other):
    os.mkdir(item + '+(fr)')


def copy(item, other):
    """cp into a new item."""
    name = 'A/.mint/c%d-%d' % (number, count)
    tool('cp', '-a', item, name)


def remove(item, other):
    shutil.rmtree(item)


def renew(item, other):
    """An item goes, and comes back with both its names as from a backup: as many as before."""
    rep, backup = os.getxattr(item, 'user.ibi.rep').decode(), 'backup-%d-%d' % (number, count)
    try:
        tool('cp', '-a', item, backup)
        shutil.rmtree(item)
        tool('cp', '-a', backup + '/.', 'A/' + rep)
    finally:
        if os.path.exists(backup) and not os.path.isdir('A/' + rep):
            os.mkdir('A/' + rep)
        shutil.rmtree(backup, ignore_errors=True)


def make_and_remove(item, other):
    """An item comes and goes."""
    name = 'A/.mint/m%d-%d' % (number, count)
    os.makedirs(name + '/doc')
    path = 'A/' + os.getxattr(name, 'user.ibi.rep').decode()
    open(path + '/doc/f', 'w').write('short-lived')
    shutil.rmtree(path)


def rsync(item, other):
    tool('rsync', '-a', '--exclude=.ibi', item + '/doc/', other + '/doc/')


def tar(item, other):
    tool('tar', '-cf', '/dev/null', item)
    tool('sh', '-c', 'tar -C "$1" -cf - doc | tar -C "$2" -xf -', 'sh', item, other)


# What is done, and how often.
BOTH = [
    (write, 14), (append, 4), (read, 8), (unlinked, 3), (rename, 6), (link, 4), (directories, 5), (tidy, 2),
    (attributes, 3), (edition, 6), (no_edition, 5), (translation, 4), (linked_translation, 3), (no_translation, 2),
    (metadata_text, 3), (sidecar, 1), (no_sidecar, 1), (modifiers, 8), (texts, 4), (walk, 4), (other_case, 1),
]
LOADS = {
    'grow': BOTH + [(label, 6), (mint_relation, 3), (copy, 1), (remove, 4), (rsync, .5), (tar, .5)],
    'steady': BOTH + [(renew, .5), (make_and_remove, .02), (rsync, .3), (tar, .3)],
}
actions, weights = zip(*LOADS[load])

while time.time() < end:
    count += 1
    action = random.choices(actions, weights)[0]
    started = time.time()
    os.pwrite(at, b'%-60s' % (b'%d %.3f %s' % (count, started, action.__name__.encode())), 0)
    try:
        all = items()
        action(either(random.choice(all)), random.choice(all))
    except OSError as error:
        refused.add('%s:%s' % (errno.errorcode[error.errno], action.__name__))
    took = time.time() - started
    if action not in (copy, renew, rsync, tar) and took > longest:
        longest, slowest = took, action.__name__
os.pwrite(at, b'%-60s' % b'done', 0)
print(count, longest, slowest, *refused)
