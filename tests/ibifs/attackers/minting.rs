//! The rights of a program in an item that it has just minted: it gets nothing that it could not have
//! natively, and the daemon does not look into it.

use crate::support::TestEnv;

/// Users in scripts, and what a user runs in Python.
const USERS: &str = "
    as() { local who=$1; shift; case $who in
        root) \"$@\";;
        alice) HOME=$PWD/home setpriv --reuid 60001 --regid 60001 --clear-groups \"$@\";;
        bob) HOME=$PWD/home setpriv --reuid 60002 --regid 60002 --clear-groups \"$@\";;
    esac; }
";

/// A mounted Archive in which everybody may mint.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh("chmod 755 .; chmod 1777 A; mkdir home; printf '[safe]\n\tdirectory = *\n' | tee home/.gitconfig > .gitconfig; mkdir work; chmod 1777 work");
    env
}

#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{USERS}\n{script}"))
}

/// A user who has minted puts another user's file, from a directory that all may write, in the place of
/// what minting has made, and makes a file of that name by the name that the kernel does not know yet.
#[test]
fn no_file_of_another_user_is_opened_under_a_name_that_was_hidden() {
    let env = environment();
    sh(
        &env,
        r#"mkdir -p A/.mint/shared/doc; S=$(realpath A/.mint/.shared)/doc; chmod 777 $S
        cat > steal.py <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
EXCHANGE = 2
def rename(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), old)
def attempt(act):
    try:
        return act()
    except OSError:
        return None
shared, number = sys.argv[1], 0
for name in ('doc', '.ibi'):
    for flags in (EXCHANGE, 0):
        for make in ('open', 'truncate', 'append', 'link', 'rename', 'by-item'):
            number += 1
            victim = '%s/victim-%d' % (shared, number)
            label = 'A/.mint/theft-%d' % number
            os.mkdir(label)
            item = os.path.dirname(label) + '/' + os.readlink('A/.mint/.theft-%d' % number)
            if name == 'doc':
                attempt(lambda: os.mkdir(item + '/doc'))
            if flags == 0:
                attempt(lambda: os.rmdir(item + '/doc'))
            attempt(lambda: rename(item + '/' + name, victim, flags) if flags else rename(victim, item + '/' + name, 0))
            path = (item if make == 'by-item' else label) + '/' + name
            how = {'open': os.O_EXCL, 'by-item': os.O_EXCL, 'truncate': os.O_TRUNC, 'append': os.O_APPEND}.get(make, 0)
            if make == 'link':
                attempt(lambda: os.link(victim, path))
            if make == 'rename':
                open(item + '/mine', 'w').close(); attempt(lambda: rename(item + '/mine', path, 1))
            opened = attempt(lambda: os.open(path, os.O_CREAT | os.O_RDWR | how))
            if opened is not None:
                attempt(lambda: os.write(opened, b'stolen'))
                attempt(lambda: os.ftruncate(opened, 3))
END
        for i in $(seq 24); do (umask 077; echo "root's own" > $S/victim-$i; stat -c %i $S/victim-$i >> numbers); done
        as alice /usr/bin/python3 steal.py $S
        for i in $(cat numbers); do find A.store/col -inum $i -size 11c -user root -perm 600 | grep -q .; done"#,
    );
}

/// The daemon opens neither the memory of the depositor nor what it is doing, nor does it query the name of the
/// program, whatever is deposited.
#[test]
fn the_daemon_does_not_look_into_its_callers() {
    let env = environment();
    env.sh(
        "mkdir -p source/doc; echo text > source/doc/f; echo 'ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43}' > source/.ibi
         echo x > source/suid; chmod 6777 source/suid; chown 1:1 source/suid
         strace -f -qq -e trace=openat,open,readlink,process_vm_readv,ptrace -o printed -p $(daemon A.store) & traced $(daemon A.store)
         cp -a source A/.mint/one; mkdir A/.mint/two; mkdir \"A/$(rep A/.mint/two)+(pt)\"; ls \"A/$(rep A/.mint/two)+(pt)\"
         tar -C source -c . | tar -x -C A/.mint/two; mv source A/.mint/three
         setpriv --reuid 60002 --regid 60002 --clear-groups sh -c 'echo y >> A/.mint/none' || true
         f=A/$(rep A/.mint/three)/suid; setpriv --reuid 60002 --regid 60002 --clear-groups sh -c \"echo y >> $f\"; chown :2 $f
         kill %1; wait %1 || true; grep -q /proc/ printed
         no grep -E '/proc/[0-9]+/(task/[0-9]+/)?(mem|syscall|comm|cmdline|exe|stack|maps|environ|fd)|process_vm|ptrace' printed",
    );
}

/// A directory that was just made is empty but for the sidecar, for its maker too; `ibifs mint` makes `doc/`.
#[test]
fn what_was_just_minted_is_empty() {
    let env = environment();
    env.sh("mkdir A/.mint/x; mkdir -p A/.mint/y/doc A/.mint/z/doc/deep");
    env.prints("ls -A A/.mint/x; ls -A A/$(rep A/.mint/x)", ".ibi\n.ibi");
    env.prints(
        "ls A/$(rep A/.mint/y); ls A/$(ibip A/.mint/z)/doc",
        "doc\ndeep",
    );
    env.sh("i=$(ibifs mint A | head -n 1); test -d A/$i/doc; j=$(ibifs mint A --translation-of A/$i --lang pt | head -n 1); test -d A/$j/doc
              rmdir A/$(rep A/.mint/x); ibifs umount A; k=$(ibifs mint A.store | head -n 1); test -d A.store/col/$k/doc; ibifs fsck A.store");
}

/// Tools deposit as they do anywhere, several at a time, by root and by others; each deposit is an item
/// of its own, an original, with the content of what was deposited.
#[test]
fn tools_deposit_side_by_side() {
    let env = environment();
    sh(
        &env,
        r#"mkdir -p tree/doc/sub tree/empty; echo text > tree/doc/file; ln tree/doc/file tree/doc/sub/hard; ln -s ../file tree/doc/sub/link
        for i in $(seq 40); do echo $i > tree/doc/sub/$i; done; cp -a tree item
        printf 'ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}\n' > item/.ibi
        chmod -R a+rX tree item
        # On bindfs each name of a file has attributes of its own until they are asked for; tar would say that it changes.
        find item -type f -exec stat --cached=never {} + > /dev/null
        tar -C item -cf item.tar .; tar -cf both.tar --transform 's/^item/tar-LABEL/' item; chmod a+r *.tar
        git init -q -b main work/git; (cd work/git; cp -r ../../item/. .; git add -f .; git -c user.name=a -c user.email=a@b.c commit -qm one); chmod -R a+rX work/git
        cat > all <<'END'
set -e; n=$1; cd $2
# One that makes nothing for a second, since others have the processors, meets the sidecar: it is run again under the label.
again() { local label=$1 turn; shift; for turn in 1 2 3 4 5; do
        "$@" 2> work/why-$label && return; grep -q '/\.ibi.: File exists' work/why-$label || break; rm A/.mint/.$label
    done; cat work/why-$label >&2; return 1; }
cp -a tree A/.mint/cp-$n & p1=$!
again cpi-$n cp -a item A/.mint/cpi-$n & p2=$!
again cpr-$n cp -r item A/.mint/cpr-$n & p3=$!
rsync -a tree/ A/.mint/rs-$n & p4=$!
rsync -a item/ A/.mint/rsi-$n & p5=$!
(mkdir A/.mint/tar-$n; tar -x -C A/.mint/tar-$n -f item.tar) & p6=$!
git clone -q --no-hardlinks work/git A/.mint/git-$n & p7=$!
(cp -a item work/mv-$n; again mv-$n mv work/mv-$n A/.mint/) & p8=$!
(mkdir -p A/.mint/mk-$n/doc/sub A/.mint/mk-$n/empty; cp -a tree/. A/.mint/mk-$n/) & p9=$!
(install -d A/.mint/in-$n/doc; install -m 644 tree/doc/file A/.mint/in-$n/doc/) & p10=$!
tar -x --transform "s/tar-LABEL/taz-$n/" -C A/.mint -f both.tar & p11=$!
/usr/bin/python3 -c "import shutil; shutil.copytree('item', 'A/.mint/py-$n', symlinks=True)" & p12=$!
for p in $p1 $p2 $p3 $p4 $p5 $p6 $p7 $p8 $p9 $p10 $p11 $p12; do wait $p; done
for l in cp cpi cpr rs rsi tar git mv mk in taz py; do echo $l $(readlink A/.mint/.$l-$n); done > work/names-$n
END
        for who in root:1 alice:2 bob:3 alice:4; do as ${who%:*} bash all ${who#*:} $PWD & pids+=($!); done; for p in ${pids[@]}; do wait $p; done
        sort -u -k2 work/names-* | wc -l | grep -qx 48
        for n in 1 2 3 4; do while read l to; do
            i=A/${to#../}; [ "$(state $i)" = Original ]; grep -q "^ibi {rep ${to#../} " $i/.ibi; no grep -q inpe $i/.ibi
            [ $l = in ] || [ $l = git ] || diff -r --no-dereference -x .ibi tree $i
            [ $l != git ] || diff -r --no-dereference -x .ibi -x .git -x empty tree $i; [ -f $i/doc/file ]
        done < work/names-$n; done
        [ -z "$(find A -name '.*.??????')" ]; ibifs umount A; ibifs fsck A.store"#,
    );
}

/// The sidecar is not in the way of the program that has minted, under the label alone, until that has
/// paused; it is there for all others, and by the item's names for all.
#[test]
fn a_sidecar_is_hidden_from_its_maker_alone_and_not_for_long() {
    let env = environment();
    env.sh(
        r#"cat > maker.py <<'END'
import os, subprocess, threading, time
from os.path import exists
def item(label): return 'A/.mint/' + os.readlink('A/.mint/.' + os.path.basename(label))
class Interrupted(Exception): pass
# What it does with a new label before it has paused: where other programs had the processor meanwhile, it does that again.
def at_once(act):
    global begun
    for turn in range(50):
        begun = time.monotonic()
        try: return act('A/.mint/%s-%d' % (act.__name__.strip('<>'), turn))
        except Interrupted: pass
        except (AssertionError, OSError):
            if time.monotonic() - begun < 0.9: raise
    raise SystemExit('it always pauses')
def one(label):
    os.mkdir(label)
    assert not exists(label + '/.ibi') and exists(item(label) + '/.ibi')
    found = []
    thread = threading.Thread(target=lambda: found.append(exists(label + '/.ibi'))); thread.start(); thread.join()
    assert found == [False], 'a thread of the same program'
    return label
one = at_once(one)
assert subprocess.run(['test', '-f', one + '/.ibi']).returncode == 0
assert exists(one + '/.ibi'), 'another program has seen it'
os.mkdir('A/.mint/two'); time.sleep(1.3)
assert exists('A/.mint/two/.ibi'), 'after a pause'
def three(label):
    global begun
    os.mkdir(label)
    with open(label + '/large', 'w') as file:
        if time.monotonic() - begun > 0.9: raise Interrupted
        time.sleep(1.5); file.write('x')
        begun = time.monotonic()
    os.close(os.open(label + '/.ibi', os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    assert exists(label + '/.ibi')
at_once(three)
for kind, make in enumerate((os.mkdir, lambda path: os.symlink('x', path), os.mkfifo)):
    def four(label): os.mkdir(label + str(kind)); make(label + str(kind) + '/.ibi')
    at_once(four)
def sidecar_of(item):
    text = open(one + '/.ibi').read()
    for name in ('user.ibi.rep', 'user.ibi.ibip'):
        of = lambda item: os.getxattr(item, name).decode()
        text = text.replace(of(one), of(item))
    return text
for make in (os.link, os.rename):
    def named(label):
        bad, item = label + make.__name__ + '-bad', label + make.__name__ + '-good'
        os.mkdir(bad); open(bad + '/x', 'w').write('no sidecar')
        try: make(bad + '/x', bad + '/.ibi'); assert False, 'a bad sidecar'
        except OSError as error: assert error.errno == 22
        os.mkdir(item); text = sidecar_of(item) + '\n'; open(item + '/x', 'w').write(text); make(item + '/x', item + '/.ibi')
        assert open(item + '/.ibi').read() == text
    at_once(named)
print('no sidecar')
END
        test "$(python3 maker.py)" = 'no sidecar'"#,
    );
}

/// A later process with the number of one that has minted, or removed a sidecar, is another program.
#[test]
fn a_number_that_is_given_again_is_another_program() {
    let env = environment();
    env.sh(
        r#"cat > again.py <<'END'
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
def fork_as(number):
    tids = (ctypes.c_int * 1)(number)
    args = struct.pack('=11Q', 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(tids), 1, 0)
    return libc.syscall(435, ctypes.create_string_buffer(args), len(args))
def again(first, second):
    number = os.fork()
    if number == 0:
        first(); os._exit(0)
    os.waitpid(number, 0)
    child = fork_as(number)
    if child == 0:
        os._exit(second())
    assert child == number, (child, ctypes.get_errno())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def make(path):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)); return 1
    except FileExistsError:
        return 0
assert again(lambda: os.mkdir('A/.mint/x'), lambda: make('A/.mint/x/.ibi')) == 0
item = 'A/.mint/' + os.readlink('A/.mint/.x')
assert again(lambda: os.unlink(item + '/.ibi'), lambda: make(item + '/.ibi')) == 0
os.mkdir(item + '/doc')
assert again(lambda: os.mkdir('A/.mint/y'), lambda: 0 if os.path.lexists('A/.mint/y/.ibi') else 1) == 0
END
        python3 again.py"#,
    );
}

/// An item that is minted by a modifier's name is a directory for its maker while it fills it, then the link that it is
/// for all others.
#[test]
fn what_is_made_under_a_modifier_becomes_a_link() {
    let env = environment();
    env.sh(
        r#"mkdir -p A/.mint/it/doc tree/doc; echo meu > tree/doc/file; printf 'ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43}\n' > tree/.ibi
        cat > maker.py <<'END'
import os, subprocess, sys, time
# Where other programs had the processor until it had paused, it does that again.
for language in sys.argv[2].split(','):
    path, begun = '%s+(%s)' % (sys.argv[1], language), time.monotonic()
    try:
        os.mkdir(path); assert os.path.isdir(path) and not os.path.islink(path)
        assert subprocess.run(['test', '-L', path]).returncode == 0
        os.makedirs(path + '/doc/deep'); assert not os.path.islink(path)
        break
    except (AssertionError, OSError):
        if time.monotonic() - begun < 0.9: raise
else: raise SystemExit('it always pauses')
end = time.monotonic() + 60
while not os.path.islink(path):
    assert time.monotonic() < end; time.sleep(0.1)
assert os.path.isdir(path + '/doc/deep')
END
        python3 maker.py A/$(rep A/.mint/it) pt,de,nl,sv,da,fi,pl,cs; python3 maker.py A/$(ibip A/.mint/it) en,it,ro,hu,tr,el,uk,ja
        cp -a tree "A/$(rep A/.mint/it)+(fr)"; grep -qx meu "A/$(rep A/.mint/it)+(fr)/doc/file"; no grep inpe "A/$(ibip A/.mint/it)+(fr)/.ibi"
        rsync -a tree/ "A/$(ibip A/.mint/it)+(es)/"; grep -qx meu "A/$(rep A/.mint/it)+(es)/doc/file"; ibifs umount A; ibifs fsck A.store"#,
    );
}
