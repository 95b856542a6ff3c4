//! One item, two trees: what changes through one is right at once through the other.

use crate::support::{Disk, Format, Needs, TestEnv};

/// A test environment with an item in A, and `$REP` and `$IBIP`, its directories, in every script.
fn item() -> (TestEnv, String) {
    item_on(TestEnv::new())
}

fn item_on(env: TestEnv) -> (TestEnv, String) {
    let env = env.with_a();
    let names = item_in(&env);
    (env, names)
}

fn item_in(env: &TestEnv) -> String {
    env.sh("mkdir -p A/.mint/it/doc");
    format!(
        "export REP=$PWD/A/{} IBIP=$PWD/A/{}\n",
        env.sh("rep A/.mint/it"),
        env.sh("ibip A/.mint/it")
    )
}

/// Runs Python with `rep` and `ibip`, the item's directories, and `turns()`: each of a few hundred
/// turns gives a number and the two trees, every other time the other way round.
#[track_caller]
fn python(code: &str) {
    let (env, names) = item();
    python_in(&env, &names, code);
}

/// The same, on a filesystem that has something.
#[track_caller]
fn python_with(needed: Needs, code: &str) {
    let (env, names) = item_on(TestEnv::with(needed));
    python_in(&env, &names, code);
}

#[track_caller]
fn python_in(env: &TestEnv, names: &str, code: &str) {
    env.prints(
        &format!(
            "{names}python3 - <<'END'
import os, stat, ctypes, errno, time
# A change is answered after 0.2 s at the latest: on a busy machine the other tree may show it a little later.
def patient(call):
    def act(*arguments, **named):
        begun = time.monotonic()
        try:
            return call(*arguments, **named)
        finally:
            if time.monotonic() - begun > 0.19:
                time.sleep(1)
    return act
for name in ('rename', 'replace', 'link', 'symlink', 'unlink', 'mkdir', 'rmdir'):
    setattr(os, name, patient(getattr(os, name)))
libc = ctypes.CDLL(None, use_errno=True)
rep, ibip = os.environ['REP'], os.environ['IBIP']
def turns(count=300):
    for i in range(count):
        yield (i, rep, ibip) if i % 2 else (i, ibip, rep)
def there(path):
    return os.path.lexists(path)
def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
@patient
def exchange(old, new):
    assert not libc.renameat2(-100, old.encode(), -100, new.encode(), 2)
{code}
print('done')
END"
        ),
        "done",
    );
}

/// Files made, grown, cut, chmod'ed, renamed and removed through one tree are so in the other, in
/// one process without a pause, though both trees were asked before; their numbers are the same.
#[test]
fn files_change_in_both_trees_at_once() {
    python_with(
        Needs::HardLinks,
        "
for i, a, b in turns():
    f, g = f'/f{i}', f'/g{i}'
    assert not there(a + f) and not there(b + f)
    open(a + f, 'w').write('one')
    assert there(b + f) and f[1:] in os.listdir(b), i
    s, t = os.stat(a + f), os.stat(b + f)
    assert (s.st_ino, s.st_size, s.st_mtime_ns) == (t.st_ino, 3, t.st_mtime_ns), i
    assert [e.inode() for e in os.scandir(a) if e.name == f[1:]] == [e.inode() for e in os.scandir(b) if e.name == f[1:]] == [s.st_ino]
    open(b + f, 'a').write('two')
    assert open(a + f).read() == 'onetwo' and os.stat(a + f).st_size == 6, i
    os.truncate(a + f, 4); assert os.stat(b + f).st_size == 4 and open(b + f).read() == 'onet', i
    os.chmod(b + f, 0o600); assert stat.S_IMODE(os.stat(a + f).st_mode) == 0o600, i
    os.utime(a + f, ns=(i, i + 1)); assert os.stat(b + f).st_mtime_ns == i + 1, i
    os.chown(b + f, i, 7); assert os.stat(a + f).st_uid == i, i
    os.setxattr(a + f, 'user.i', b'%d' % i); assert os.getxattr(b + f, 'user.i') == b'%d' % i, i
    os.rename(a + f, a + g)
    assert not there(b + f) and there(b + g) and not there(a + f), i
    open(b + f, 'w').write('other'); assert there(a + f)
    os.replace(b + f, b + g); assert open(a + g).read() == 'other' and not there(a + f), i
    assert refused(os.rename, a + g, b + f) == 'EXDEV'
    os.rename(b + g, b + f); assert there(a + f) and not there(b + g) and not there(a + g), i
    os.link(a + f, b + g); assert os.stat(a + g).st_nlink == os.stat(b + f).st_nlink == 2, i
    os.unlink(b + f); assert not there(a + f) and os.stat(a + g).st_nlink == 1, i
    os.unlink(a + g); assert not there(b + g) and refused(open, b + g) == 'ENOENT', i
    assert set(os.listdir(a)) == set(os.listdir(b)) == {'doc', '.ibi'}, i
",
    );
}

/// Directories made, filled, moved between directories, exchanged and removed through one tree are
/// so in the other, with what lies below them.
#[test]
fn directories_change_in_both_trees_at_once() {
    python_with(
        Needs::RenameFlags,
        "
for i, a, b in turns(200):
    d, e = f'/d{i}', f'/e{i}'
    links, before = os.stat(b).st_nlink, os.stat(b).st_mtime_ns
    os.mkdir(a + d, 0o750)
    assert os.stat(b).st_nlink == links + 1 and os.stat(b).st_mtime_ns == os.stat(a).st_mtime_ns >= before, i
    assert stat.S_IMODE(os.stat(b + d).st_mode) == 0o750 and os.stat(a + d).st_ino == os.stat(b + d).st_ino
    os.mkdir(b + d + '/sub'); open(a + d + '/sub/x', 'w').write('x')
    assert os.listdir(b + d + '/sub') == ['x'] and os.stat(a + d).st_nlink == os.stat(b + d).st_nlink == 3, i
    os.chmod(b + d + '/sub', 0o711); assert stat.S_IMODE(os.stat(a + d + '/sub').st_mode) == 0o711, i
    os.rename(a + d, a + e)
    assert not there(b + d) and open(b + e + '/sub/x').read() == 'x', i
    os.mkdir(b + d); os.rename(b + e + '/sub', b + d + '/moved')
    assert not there(a + e + '/sub') and open(a + d + '/moved/x').read() == 'x' and os.listdir(a + e) == [], i
    assert os.path.realpath(a + d + '/moved/..') == os.path.realpath(a + d), i
    os.rename(a + d + '/moved/x', a + e + '/y'); assert os.listdir(b + d + '/moved') == [] and there(b + e + '/y'), i
    exchange(b + d, b + e)
    assert os.listdir(a + d) == ['y'] and os.listdir(a + e) == ['moved'], i
    assert refused(os.rmdir, a + d) == 'ENOTEMPTY' and refused(os.rename, a + e, b + e + '2') == 'EXDEV', i
    os.unlink(b + d + '/y'); assert not there(a + d + '/y')
    os.rename(a + e + '/moved', a + d); assert not there(b + e + '/moved') and os.listdir(b + d) == [], i
    os.rmdir(b + e); assert not there(a + e) and refused(os.listdir, a + e) == 'ENOENT', i
    os.rmdir(a + d); assert not there(b + d) and os.stat(b).st_nlink == links == os.stat(a).st_nlink, i
",
    );
}

/// Links made, replaced and removed through one tree read right in the other, each with its own
/// climb; one name may be a file, a link and a directory in turn.
#[test]
fn links_change_in_both_trees_at_once() {
    python(
        "
for i, a, b in turns(200):
    l = f'/doc/l{i}'
    up = {rep: '../../../../../', ibip: '../../../'}
    os.symlink(up[a] + f'to/{i}', a + l)
    assert os.readlink(b + l) == up[b] + f'to/{i}' and os.readlink(a + l) == up[a] + f'to/{i}', i
    os.symlink(up[b] + f'new/{i}', b + l + 'new'); os.replace(b + l + 'new', b + l)
    assert os.readlink(a + l) == up[a] + f'new/{i}' and not there(a + l + 'new'), i
    os.symlink('plain', a + l + 'new'); os.replace(a + l + 'new', a + l); assert os.readlink(b + l) == 'plain', i
    os.unlink(b + l); assert not there(a + l), i
    os.mkdir(a + l); assert os.path.isdir(b + l); os.rmdir(b + l)
    open(a + l, 'w'); assert os.path.isfile(b + l); os.unlink(b + l); assert not there(a + l), i
    os.mkfifo(b + l); assert stat.S_ISFIFO(os.lstat(a + l).st_mode); os.unlink(a + l); assert not there(b + l), i
    assert os.listdir(a + '/doc') == os.listdir(b + '/doc') == [], i
",
    );
}

/// A link reads in each tree, and under its label, as it was written there, wherever it leads: to the prefix, through
/// the root to the same prefix, half way up the rep tree. Its size is that of its text, and it leads to the same
/// file in both trees. A copy of such links is complete.
#[test]
fn links_read_as_they_were_written() {
    let (env, names) = item();
    env.sh("mkdir -p A/.mint/other/doc; echo there > A/.mint/other/doc/x");
    let names = format!(
        "{names}export OTHER=$(ibip A/.mint/other) LABEL=$PWD/A/.mint/it YEAR=$(dirname $(rep A/.mint/it))\n"
    );
    python_in(
        &env,
        &names,
        "
other, label, year = os.environ['OTHER'], os.environ['LABEL'], os.environ['YEAR']
prefix, suffix = other.split('/')
def check(tree, place, text):
    os.symlink(text, tree + place + '/l')
    assert os.readlink(tree + place + '/l') == text, (place, text, os.readlink(tree + place + '/l'))
    for at in (rep, ibip, label):
        link = at + place + '/l'
        assert os.lstat(link).st_size == len(os.readlink(link)), (link, text)
        if text.endswith('doc/x') and tree != label != at: assert open(link).read() == 'there\\n', (link, text)
    os.unlink(tree + place + '/l')
os.makedirs(ibip + '/doc/deep')
for place, depth in (('', 0), ('/doc', 1), ('/doc/deep', 2)):
    up = '../' * (depth + 1)
    for tree in (ibip, label):
        for above in (up, './' + up, up + './', up + '/', up.replace('/', '/./')):
            for text in ('', suffix, suffix + '/doc/x', 'nothing/', f'./{suffix}/doc/x', '../' + other + '/doc/x',
                    '../', '../.', f'../{prefix}', f'.././{prefix}/', f'../{year}', '../../up', f'.././{other}/doc/x'):
                check(tree, place, above + text)
        check(tree, place, up[:-1]); check(tree, place, '../' + up[:-1])
    for above in range(1, depth + 6): check(rep, place, '../' * above + 'x/')
os.symlink('../' + suffix + '/doc/x', ibip + '/l')
copy = '(cd $IBIP && rsync -ai ./ $OLDPWD/copy/ && rsync -ai $OLDPWD/copy/ ./)'
assert not os.system(f'mkdir copy && {copy} > first && {copy} > second && [ -s first ] && ! [ -s second ]')
",
    );
}

/// An item that comes or goes through one tree does so in the other at once, though both were asked
/// before, and the times of the levels above it show it.
#[test]
fn items_come_and_go_in_both_trees_at_once() {
    let env = TestEnv::new().with_a();
    env.sh("mint A first; year=A/$(dirname $(rep A/.mint/first)); ls $year > /dev/null
        there() { for name in A/$rep A/$ibip; do test -d $name; stat $name > /dev/null; done; ls $year | grep -qx $(basename $rep); }
        gone() { for name in A/$rep A/$ibip; do no stat $name; no ls $name; done; no ls $year/$(basename $rep); }
        for turn in 1 2 3 4 5 6; do
            before=$(stat -c %y $year A); mint A l$turn; test \"$before\" != \"$(stat -c %y $year A)\"
            rep=$(rep A/.mint/l$turn); ibip=$(ibip A/.mint/l$turn); there; there
            before=$(stat -c %y $year)
            case $turn in [123]) rm -r A/$rep;; *) rm -r A/$ibip;; esac
            gone; gone; ! mkdir \"A/$rep+(fr)\" 2> why; grep -q 'No such file' why; test \"$before\" != \"$(stat -c %y $year)\"; no stat A/.mint/l$turn
            mkdir A/$rep; there; rm -r A/$ibip; gone
        done
        ! ls A/$(dirname $ibip) | grep -x $(basename $ibip)");
    // A prefix that has only this item goes with it, and comes with it.
    env.sh(
        "mkdir A/8JMKD3MGP8W; ls A/8JMKD3MGP8W; mkdir A/8JMKD3MGP8W/34PGRBS; ls A/8JMKD3MGP8W | grep 34PGRBS
        rmdir A/8JMKD3MGP8W/34PGRBS; no ls A/8JMKD3MGP8W/34PGRBS; rmdir A/8JMKD3MGP8W 2> why || cat why
        mkdir -p A/8JMKD3MGP8W; mkdir A/8JMKD3MGP8W/34PGRBS; ls A/8JMKD3MGP8W/34PGRBS",
    );
}

/// The loss of a name or an owner through one tree shows in the other: open directories that are removed, symbolic
/// links with several names, and the right to change a directory.
#[test]
fn counts_and_owners_change_in_both_trees_at_once() {
    python_with(
        Needs::OpenAfterRemoval,
        "
import ctypes
for turn, one, other in turns():
    os.mkdir(one + '/d'); d = os.open(other + '/d', os.O_RDONLY); assert os.fstat(d).st_nlink == 2
    os.rmdir(one + '/d'); assert os.fstat(d).st_nlink == 0, turn; os.close(d)
    os.symlink('x', one + '/l'); assert os.lstat(other + '/l').st_nlink == 1
    os.link(one + '/l', one + '/m', follow_symlinks=False)
    assert os.lstat(other + '/l').st_nlink == 2, turn
    os.unlink(one + '/m'); assert os.lstat(other + '/l').st_nlink == 1, turn
    os.unlink(one + '/l')
os.mkdir(rep + '/e'); os.chown(rep + '/e', 1234, 1234); os.chmod(rep, 0o755); os.stat(ibip + '/e')
os.chown(rep + '/e', 4321, 4321)
child = os.fork()
if child == 0:
    os.setresgid(1234, 1234, 1234); os.setresuid(1234, 1234, 1234)
    acl = bytes.fromhex('02000000' + '01000700ffffffff' + '04000700ffffffff' + '20000700ffffffff')
    for change in (lambda: os.chmod(ibip + '/e', 0o777),
                   lambda: os.setxattr(ibip + '/e', 'system.posix_acl_access', acl)):
        try: change()
        except PermissionError: continue
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0; assert os.stat(rep + '/e').st_mode & 0o777 == 0o755
",
    );
}

/// A symbolic link with a new name in the other tree is counted in both.
#[test]
fn links_with_names_in_both_trees_are_counted() {
    python(
        "
for i, a, b in turns():
    os.symlink('x', a + '/l'); assert os.lstat(a + '/l').st_nlink == 1
    os.link(a + '/l', b + '/m', follow_symlinks=False)
    assert os.lstat(a + '/l').st_nlink == 2 and os.lstat(b + '/m').st_nlink == 2, i
    os.unlink(b + '/m'); assert os.lstat(a + '/l').st_nlink == 1, i
    os.unlink(a + '/l')
    # In directories each of which is known in one tree alone.
    os.mkdir(a + f'/d{i}'); os.mkdir(b + f'/e{i}')
    os.symlink('x', a + f'/d{i}/l'); os.link(a + f'/d{i}/l', b + f'/e{i}/m', follow_symlinks=False)
    assert os.lstat(a + f'/d{i}/l').st_nlink == 2
    os.unlink(b + f'/e{i}/m'); assert os.lstat(a + f'/d{i}/l').st_nlink == 1, i
",
    );
}

/// On a disk with few inodes a new file soon has the number of one that is gone, and of which the
/// kernel still knows more than one: only the new one is notified of what happens to it.
#[test]
fn files_that_have_the_inodes_of_gone_ones_are_counted() {
    let env = TestEnv::new();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 2);
    // Few files are kept open by the daemon, for an open one keeps its inode.
    env.sh("ibifs init disk/S --host archive-a.example.org; mkdir A; ulimit -n 300; ibifs mount disk/S A");
    let names = item_in(&env);
    env.run(
        "mkdir disk/all; for i in $(seq 1000); do : > disk/all/$i || break; done
        ls disk/all | head -n 130 | (cd disk/all; xargs rm)",
    );
    python_in(
        &env,
        &names,
        "
import random
held = []
for i, a, b in turns(4000):
    if i % 2:
        gone = a + '/gone'
        make = random.choice((lambda: os.symlink('x', gone), lambda: os.close(os.open(gone, os.O_CREAT)), lambda: os.mkdir(gone)))
        make()
        if random.randrange(2): os.lstat(b + '/gone')
        held.append(os.open(random.choice((a, b)) + '/gone', os.O_PATH | os.O_NOFOLLOW))
        (os.rmdir if os.path.isdir(gone) and not os.path.islink(gone) else os.unlink)(random.choice((a, b)) + '/gone')
    while len(held) > random.randrange(1, 16): os.close(held.pop(random.randrange(len(held))))
    os.symlink('x', a + '/m'); os.lstat(a + '/m'); os.lstat(b + '/m')
    os.link(b + '/m', a + '/n', follow_symlinks=False)
    assert os.lstat(a + '/m').st_nlink == os.lstat(b + '/m').st_nlink == 2, i
    os.unlink(a + '/n')
    assert os.lstat(a + '/m').st_nlink == os.lstat(b + '/m').st_nlink == 1, i
    os.unlink(b + '/m')
",
    );
    env.sh("ibifs umount A");
    drop(disk);
}

/// The text of a link that climbs out of the item depends on its place: moved, alone or in a directory, through either
/// tree, the link has the new text at once.
#[test]
fn links_that_are_moved_say_where_they_are() {
    python(
        "
os.makedirs(rep + '/d/e')
for i, a, b in turns(100):
    os.symlink('../' * 6 + 'x', rep + '/d/e/l')
    assert os.readlink(ibip + '/d/e/l') == '../' * 4 + 'x'
    os.rename(a + '/d/e/l', a + '/d/l')
    assert os.readlink(ibip + '/d/l') == '../' * 4 + 'x' and os.readlink(rep + '/d/l') == '../' * 6 + 'x', i
    os.rename(a + '/d/l', a + '/l')
    assert os.readlink(ibip + '/l') == '../' * 4 + 'x' and os.lstat(ibip + '/l').st_size == 13, i
    os.unlink(ibip + '/l')
    # Four above d/e is half way up the rep tree; four above e is the root.
    os.symlink('../' * 5 + 'x', rep + '/d/e/l')
    half = os.readlink(ibip + '/d/e/l'); assert half.endswith('/x') and 'example.org' in half, half
    os.rename(b + '/d/e', b + '/e'); said = os.readlink(ibip + '/e/l'); assert said == '../' * 3 + 'x', (i, said)
    assert os.lstat(ibip + '/e/l').st_size == len(said), i
    # The new name is looked at first: the daemon may still be looking up the one before in this tree.
    assert there(a + '/e'); os.rename(a + '/e', a + '/d/e'); assert os.readlink(ibip + '/d/e/l') == half, i
    os.unlink(a + '/d/e/l')
",
    );
}

/// A process in a directory that is removed through the other tree is in an empty one without a name, as on any
/// filesystem: in an item's own directory, too.
#[test]
fn a_removed_directory_is_empty_for_who_is_in_it() {
    python_with(
        Needs::OpenAfterRemoval,
        "
def nowhere():
    # Until what knew it in the other tree has been forgotten and closed.
    for _ in range(500):
        if os.stat('.').st_nlink == 0: break
        time.sleep(.02)
    assert os.stat('.').st_nlink == 0
    assert refused(os.stat, 'f') == refused(open, 'f', 'w') == refused(os.mkdir, 'd') == 'ENOENT'
    assert refused(os.rename, 'f', rep + '/f') == 'ENOENT'
    os.chdir('/')
for i, a, b in turns(20):
    os.makedirs(a + '/d/e'); os.stat(b + '/d/e'); os.chdir(b + '/d/e')
    os.rmdir(a + '/d/e'); nowhere()
    os.mkdir(a + '/e'); os.chdir(b + '/d'); os.rename(a + '/e', a + '/d'); nowhere()
    os.rmdir(b + '/d')
os.chdir(ibip); os.system('rm -r ' + rep)
assert os.stat('.').st_nlink == 0 and refused(os.mkdir, 'd') == 'ENOENT'; os.chdir('/')
",
    );
}

/// A directory that moves in one tree while it is in use in the other is found there where it is now, in
/// use as it was; only a rename of what no user has looked at yet cannot find it.
#[test]
fn a_directory_moves_that_is_in_use_in_the_other_tree() {
    python(
        "
for i, a, b in turns(20):
    os.makedirs(a + '/d'); os.makedirs(a + '/e/f'); opened = open(b + '/d/text', 'w')
    os.rename(a + '/d', a + '/e/f/d')
    assert refused(os.rename, b + '/e/f/d', b + '/e/d') in (None, 'ESTALE')
    if there(b + '/e/f/d'):
        os.rename(b + '/e/f/d', b + '/e/d')
    opened.write('text'); opened.close(); assert open(b + '/e/d/text').read() == 'text', i
    opened = open(b + '/e/d/text'); os.rename(a + '/e/d', a + '/e/f/d')
    assert os.system(f'ls -d {b}/e/f/d > /dev/null; mv {b}/e/f/d {b}/e/d') == 0 and opened.read() == 'text', i
    opened.close(); assert os.listdir(a + '/e/d') == ['text'], i
    os.system(f'rm -r {a}/e')
",
    );
}

/// A process in a directory gets its new name when the directory, or one above it, is renamed or moved in the other
/// tree, and can rename it on.
#[test]
fn a_working_directory_that_moves_has_its_new_name() {
    python(
        "
def comes_to(place):
    for _ in range(500):
        try:
            if os.getcwd() == place:
                return
        except FileNotFoundError:
            pass
        time.sleep(.01)
    assert os.getcwd() == place
for i, a, b in turns(20):
    os.makedirs(a + '/d/e'); os.mkdir(a + '/h'); os.chdir(b + '/d')
    os.rename(a + '/d', a + '/c'); comes_to(b + '/c')
    os.chdir('e'); os.rename(a + '/c', a + '/g'); comes_to(b + '/g/e')
    os.rename(a + '/g', a + '/h/g'); comes_to(b + '/h/g/e')
    os.mkdir(a + '/x'); exchange(a + '/h', a + '/x'); comes_to(b + '/x/g/e')
    os.mkdir(a + '/y'); exchange(a + '/y', a + '/x'); comes_to(b + '/y/g/e')
    os.rename(b + '/y/g', b + '/z'); assert os.getcwd() == b + '/z/e'
    os.chdir('/'); os.system(f'rm -r {a}/[hxyz]')
",
    );
}

/// A rename of a directory to itself, by its name in the other tree, is refused; a process in it remains there.
#[test]
fn a_directory_that_is_renamed_to_itself_is_as_it_was() {
    python(
        "
for i, a, b in turns(20):
    os.makedirs(a + '/d/e'); open(a + '/d/f', 'w').close()
    for inside, f in [('/d', 'f'), ('/d/e', '../f')]:
        os.chdir(b + inside)
        assert refused(os.rename, a + '/d', b + '/d') == 'EBUSY'
        assert os.system(f'mv -T {a}/d {b}/d 2> /dev/null') != 0 and there(a + '/d/f')
        assert there(f); open('new', 'w').close(); os.unlink('new')
    os.chdir('/'); os.system(f'rm -r {a}/d')
",
    );
}

/// The metadata text is a file of the item: written, replaced and removed beside it, it comes and goes
/// in listings of the item that are remembered.
#[test]
fn a_metadata_text_is_listed_at_once() {
    python(
        "
name = '.ibi.metadata'
for i, a, b in turns(60):
    assert name not in os.listdir(a) + os.listdir(b), i
    before = os.stat(b).st_mtime_ns
    open(a + ':', 'w').write('title: x')
    assert name in os.listdir(a) and name in os.listdir(b) and os.stat(b).st_mtime_ns > before, i
    os.unlink(b + ':'); assert name not in os.listdir(a) + os.listdir(b), i
    open(os.path.dirname(a) + '/.new', 'w').write('title: y'); os.rename(os.path.dirname(a) + '/.new', a + ':')
    assert name in os.listdir(a) and name in os.listdir(b), i
    os.rename(b + ':', os.path.dirname(b) + '/.old'); assert name not in os.listdir(a) + os.listdir(b), i
    os.unlink(os.path.dirname(b) + '/.old')
",
    );
}

/// The item's own directory, too: its mode, attributes and times are one thing in both trees.
#[test]
fn an_items_own_attributes_are_the_same_in_both_trees() {
    python(
        "
for i, a, b in turns():
    os.chmod(a, 0o700 + i % 64); assert stat.S_IMODE(os.stat(b).st_mode) == 0o700 + i % 64, i
    os.utime(b, ns=(i, i)); assert os.stat(a).st_mtime_ns == i
    os.setxattr(a, 'user.x', b'%d' % i); assert os.getxattr(b, 'user.x') == b'%d' % i
    os.removexattr(b, 'user.x'); assert os.listxattr(a) == []
os.chmod(rep, 0o755)
",
    );
}

/// The sidecar that a relation changes is read new in both trees at once, though it was read before.
#[test]
pub fn a_sidecar_that_changes_is_read_new_at_once() {
    let (env, names) = item();
    env.sh(&format!(
        "{names}
         for i in 1 2 3 4 5 6; do
             cat $REP/.ibi $IBIP/.ibi > /dev/null; stat $REP/.ibi $IBIP/.ibi > /dev/null
             mkdir A/.mint/next-$i; next=$(rep A/.mint/next-$i)
             ln -sfn ../../../$next \"$REP!\"
             grep -q \"nextedition.*$next\" $REP/.ibi; cmp $REP/.ibi $IBIP/.ibi
             rm \"$IBIP!\"; no grep nextedition $IBIP/.ibi; cmp $REP/.ibi $IBIP/.ibi
         done"
    ));
}

/// A foreign sidecar that is written or renamed into an original is refused, and the very process that
/// has written it reads the original's own at once.
#[test]
fn a_foreign_sidecar_is_not_seen_again() {
    python(
        "
own = open(rep + '/.ibi').read()
foreign = 'ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}'
for i, a, b in turns(100):
    file = os.open(a + '/.ibi', os.O_WRONLY | os.O_TRUNC)
    os.write(file, foreign.encode())
    try: os.close(file); assert False, i
    except OSError as error: assert error.errno == 22, i
    assert open(b + '/.ibi').read() == own == open(a + '/.ibi').read(), i
    new = a + '/..ibi.AbCd12'
    open(new, 'w').write(foreign)
    try: os.replace(new, a + '/.ibi'); assert False, i
    except OSError as error: assert error.errno == 22, i
    os.unlink(new)
    assert open(a + '/.ibi').read() == own == open(b + '/.ibi').read() and not there(new), i
assert sorted(name for name in os.listdir(rep) if 'ibi' in name) == ['.ibi', '.ibi.broken-1']
",
    );
}

/// Links that climb out of an item lead to the same file in both trees, and a copy of the item from
/// the IBIp tree of one Archive to the IBIp tree of another holds in both trees there.
#[test]
fn climbing_links_hold_in_both_trees_of_a_copy() {
    let env = TestEnv::new().with_a().with_b();
    env.sh(
        "mkdir -p A/.mint/one A/.mint/two/doc; echo found > A/.mint/two/doc/report
         mkdir -p A/.mint/one/doc/deep/er",
    );
    let [one, two] = ["one", "two"].map(|name| env.sh(&format!("rep A/.mint/{name}")));
    let [one_i, two_i] = ["one", "two"].map(|name| env.sh(&format!("ibip A/.mint/{name}")));
    let two_date = two.rsplit('/').next().expect("a date").to_owned();
    let two_suffix = two_i.rsplit('/').next().expect("a suffix").to_owned();
    env.sh(&format!(
        "ln -s ../../../../../{two}/doc/report A/{one}/doc/whole
         ln -s ../../{two_date}/doc/report A/{one}/doc/year
         ln -s ../../../../../../../{two_i}/doc/report A/{one}/doc/deep/er/opaque
         ln -s ../../../{two_i}/doc/report A/{one_i}/doc/from-ibip
         ln -s ../../{two_suffix}/doc/report A/{one_i}/doc/prefix
         ln -s ../doc/whole A/{one}/doc/inside; ln -s ../../.. A/{one}/doc/deep/er/item"
    ));
    let all = "whole year deep/er/opaque from-ibip prefix inside deep/er/item/doc/whole";
    let read = |base: &str| {
        env.prints(
            &format!("cd {base}/doc; for l in {all}; do cat $l; done"),
            &["found"; 7].join("\n"),
        );
    };
    read(&format!("A/{one}"));
    read(&format!("A/{one_i}"));
    env.prints(
        &format!("readlink A/{one}/doc/whole A/{one_i}/doc/whole A/{one_i}/doc/inside"),
        &format!("../../../../../{two}/doc/report\n../../../{two}/doc/report\n../doc/whole"),
    );
    // And each is as long as it says.
    env.sh(&format!(
        "for l in A/{one}/doc/whole A/{one_i}/doc/whole A/{one_i}/doc/from-ibip; do
             [ $(stat -c %s $l) = $(readlink -n $l | wc -c) ] || exit 1
         done"
    ));
    let prefix = one_i.split('/').next().expect("a prefix");
    env.sh(&format!(
        "mkdir B/{prefix}; cp -a A/{one_i} A/{two_i} B/{prefix}/"
    ));
    read(&format!("B/{one}"));
    read(&format!("B/{one_i}"));
    env.prints(&format!("rsync -aHAXi A/{one_i}/ B/{one_i}/"), "");
    env.prints(
        &format!("state B/{one}; echo; find B -name from-ibip | wc -l"),
        "Copy\n1",
    );
    // And the other way, by the rep trees: then the links are the same on disk, byte for byte.
    env.sh(&format!(
        "rm -r B/{one}; mkdir -p B/{one}; cp -a A/{one}/. B/{one}/
         links() {{ (cd $1.store/col; find {one} -type l -printf '%p %l\\n' | sort); }}
         links A > links; links B | diff links -"
    ));
    read(&format!("B/{one_i}"));
}

/// An item that arrives by its IBIp is moved to its place as soon as its sidecar names its rep, under
/// open files and working directories; both names work from then on and `find` meets it once.
#[test]
fn an_item_that_arrives_by_its_ibip_is_moved_under_its_writers() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("mkdir -p A/.mint/it/doc");
    let rep = env.sh("rep A/.mint/it");
    let ibip = env.sh("ibip A/.mint/it");
    env.sh(&format!(
        "W=$PWD; mkdir -p B/{ibip}/doc/sub
         exec 5> B/{ibip}/doc/file; echo before >&5
         ln -s ../../../../x/y B/{ibip}/doc/sub/climbing
         [ \"$(state B/{ibip})\" = Copy ]; [ $(find B -name file | wc -l) = 1 ]
         cd B/{ibip}/doc
         cp $W/A/{rep}/.ibi $W/B/{ibip}/.ibi
         echo after >&5; exec 5>&-
         echo relative > sub/made; mkdir here; cat file > copied; ls .. > /dev/null
         cd $W
         for name in {rep} {ibip}; do
             [ \"$(cat B/$name/doc/file B/$name/doc/sub/made)\" = $'before\\nafter\\nrelative' ]
             cmp B/$name/doc/file B/$name/doc/copied; [ -d B/$name/doc/here ]; [ \"$(state B/$name)\" = Copy ]
         done"
    ));
    env.prints(
        &format!("readlink B/{ibip}/doc/sub/climbing B/{rep}/doc/sub/climbing"),
        "../../../../x/y\n../../../../../../x/y",
    );
    env.prints(
        "find B -name file | wc -l; find B -name made | wc -l",
        "1\n1",
    );
    env.prints(
        &format!("rep B/{ibip}; echo; ibip B/{rep}"),
        &format!("{rep}\n{ibip}"),
    );
    env.sh(&format!(
        "[ ! -e B.store/ibip/{ibip} ]; ibifs umount B; ibifs fsck B.store; ibifs mount B.store B; cat B/{ibip}/doc/file"
    ));
}

/// An item known by an IBIp alone is listed once from the root and copied by `rsync -a B/ C/`, with
/// a sidecar that names no rep or none at all; the second run moves nothing.
#[test]
fn an_item_without_a_rep_is_listed_once_and_copied() {
    let env = TestEnv::new().with_b();
    env.sh(
        "ibifs init C.store --host archive-c.example.com; mkdir C; ibifs mount C.store C
         mkdir -p B/8JMKD3MGP8W/34PGRBS/doc; echo bare > B/8JMKD3MGP8W/34PGRBS/doc/bare
         mkdir -p B/8JMKD3MGP8W/35MMLL8/doc; echo printed > B/8JMKD3MGP8W/35MMLL8/doc/printed
         echo 'ibi {ibip 8JMKD3MGP8W/35MMLL8}' > B/8JMKD3MGP8W/35MMLL8/.ibi",
    );
    env.prints(
        "cd B; find . -name bare -o -name printed | sort; ls 8JMKD3MGP8W",
        "./8JMKD3MGP8W/34PGRBS/doc/bare\n./8JMKD3MGP8W/35MMLL8/doc/printed\n34PGRBS\n35MMLL8",
    );
    env.sh("rsync -a B/ C/");
    env.prints("rsync -ai B/ C/", "");
    env.prints(
        "cd C; cat 8JMKD3MGP8W/34PGRBS/doc/bare 8JMKD3MGP8W/35MMLL8/doc/printed; state 8JMKD3MGP8W/35MMLL8",
        "bare\nprinted\nCopy",
    );
    env.prints(
        "du -s B | wc -l; tar -C B -cf - . | tar -t | grep -c printed",
        "1\n1",
    );
    env.sh("rm -r B/8JMKD3MGP8W/35MMLL8; no ls B/8JMKD3MGP8W/35MMLL8");
    env.prints("ls B/8JMKD3MGP8W", "34PGRBS");
}

/// The directory of an IBIp prefix is copied as a whole, and every item in it arrives.
#[test]
fn a_whole_prefix_is_copied() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("mint A one; mint A two; echo text > A/.mint/two/doc/file
        prefix=$(dirname $(ibip A/.mint/one)); cp -a A/$prefix B/; echo $prefix > prefix");
    env.prints("ls B/$(cat prefix) | wc -l", "3");
    env.prints(
        "cat B/$(rep A/.mint/two)/doc/file; state B/$(rep A/.mint/two)",
        "text\nCopy",
    );
    env.prints("rsync -aHAXniO --delete A/example.org/ B/example.org/", "");
}

/// rsync makes a whole mount a mirror of another one, whose own service stays, and ends with 0.
#[test]
fn a_mount_is_mirrored_whole() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("mint A one; mint B other; echo text > A/.mint/one/doc/file
         rep B/.mint/other > other; ls -d B/*/*/*/* | grep -vFf other > service
         for run in 1 2; do rsync -aHAX --delete A/ B/ 2> printed; test ! -s printed; done");
    env.prints(
        "cat B/$(rep A/.mint/one)/doc/file; state B/$(rep A/.mint/one); echo; state $(< service); echo
         test -e B/$(< other) || echo gone
         rsync -aHAXniO A/ B/",
        "text\nCopy\nOriginal\ngone",
    );
}

/// A name that was changed in one tree is not seen in the other one once the change was answered, however late the threads run
/// that invalidate it, as on a machine under load.
#[test]
fn a_changed_name_is_not_seen_in_the_other_tree_however_slow_the_machine_is() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"R=A/$(mint A x)/doc; P=A/$(ibip A/.mint/x)/doc; daemon=$(daemon A.store)
         for task in /proc/$daemon/task/*; do [ "$(< $task/comm)" != invalidator ] || threads+=(${task##*/}); done; [ ${#threads[@]} = 4 ]
         strace -qq -o /dev/null -e inject=write,writev:delay_enter=600000 "${threads[@]/#/-p}" & trap "kill $!" EXIT
         for thread in "${threads[@]}"; do waits grep -q '^TracerPid:.[1-9]' /proc/$daemon/task/$thread/status; done
         for i in 1 2 3; do
             echo text > $R/$i; cat $P/$i > /dev/null; mv $R/$i $R/moved-$i; [ ! -e $P/$i ]; [ -e $P/moved-$i ]
             mv $P/moved-$i $P/again-$i; [ ! -e $R/moved-$i ]
         done"#,
    );
}
