//! One thing met by two names: tools and calls that are given both see that it is one, and nothing is lost.

use crate::support::TestEnv;

/// An item `$R` with all kinds of files, `$I` its opaque name, `$L` its label, and what it must be afterwards.
const ITEM: &str = r#"
    mkdir -p A/.mint/it/doc/sub A/.mint/it/empty A/.mint/other/doc
    R=A/$(rep A/.mint/it); I=A/$(ibip A/.mint/it); L=A/.mint/it; O=$(rep A/.mint/other)
    echo text > $R/doc/file; echo more > $R/doc/sub/deep; ln $R/doc/file $R/doc/hard; mkfifo $R/pipe; mkdir $R/doc/none
    ln -s target $R/plain; ln -s ../doc/file $R/doc/inside; ln -s /etc/hosts $R/absolute; ln -s ../../../../$O/doc $R/climbs
    ln -s ../../../../../$O/doc $R/doc/climbs
    portrait() { (cd $R; find . -name .ibi -o -printf '%y %m %n %p %l\n' | sort; find . -type f ! -name .ibi -exec md5sum {} + | sort); }
    portrait > before
    whole() { portrait | diff before -; for way in $I $L; do (cd $way; find . -name .ibi -o -printf '%y %m %n %p\n' | sort) | diff <(cut -d' ' -f1-4 before | grep -v '^[0-9a-f]\{32\}' ) -; done; }
"#;

fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(&format!("cat > item <<'END'\n{ITEM}\nEND\n. ./item; declare -p R I L > names; declare -f portrait whole >> names; whole"));
    env
}

#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!(". ./names\n{script}"))
}

/// `stat` and listings show one number for one file in all trees, and different ones for different files.
#[test]
fn every_file_has_one_number_in_all_trees() {
    let env = environment();
    sh(
        &env,
        r#"for i in 1 2; do for p in . doc doc/sub empty doc/none doc/file doc/hard pipe plain absolute doc/inside climbs doc/climbs .ibi; do
            a=$(stat -c %i $R/$p); for way in $I $L; do [ $(stat -c %i $way/$p) = $a ] || { echo $way/$p; exit 1; }; done; echo $a
         done | sort -u | wc -l | grep -qx 13; done
         for way in $R $I $L; do (cd $way; find . -exec stat -c '%i %n' {} + | sort -k2) > numbers; [ -e first ] || cp numbers first; cmp numbers first
             (cd $way; find . ! -name climbs -printf '%i %p\n' | sort -k2) | cmp - <(grep -v '/climbs$' numbers)
             (cd $way; find . -mindepth 1 -exec ls -di {} + | sort -k2 | sed 's/^ *//') | cmp - <(grep -v ' \.$' numbers)
             find $way -inum $(stat -c %i $R/doc/sub) | grep -qx $way/doc/sub; [ $(ls -ia $way | awk '$2 == "." { print $1 }') = $(stat -c %i $R) ]
             [ $(ls -ai $way/doc | awk '$2 == ".." { print $1 }') = $(stat -c %i $R) ]
         done
         [ $(du -s $R $I | wc -l) = 1 ]; [ $(du -s $I $L $R | wc -l) = 1 ]; [ $R -ef $I ]; [ $L -ef $I ]; [ $R/climbs -ef $I/climbs ]
         (cd $I/doc/sub; [ $(realpath .) = $OLDPWD/$I/doc/sub ]; [ $(/bin/pwd) = $OLDPWD/$I/doc/sub ]); (cd $L/doc; mv sub sub2; mv sub2 sub)
         whole"#,
    );
}

/// rename(2) of a thing onto itself by two names succeeds and does nothing.
#[test]
fn a_rename_onto_itself_does_nothing() {
    let env = environment();
    sh(
        &env,
        r#"cat > onto.py <<'END'
import ctypes, itertools, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
ways = sys.argv[1:]
names = ['doc/file', 'doc/sub/deep', 'pipe', 'plain', 'doc/inside', 'absolute', 'empty', 'doc/none', 'doc/sub', 'doc', 'climbs', 'doc/climbs']
def look(path):
    stat = os.lstat(path)
    printed = [stat.st_ino, stat.st_mode, stat.st_nlink]
    if os.path.islink(path): printed.append(os.readlink(path))
    elif os.path.isdir(path): printed.append(sorted(os.listdir(path)))
    return printed
# The kernel is printed of what it has moved after the answer: of climbing links it shows that for an instant.
def settles(one, other, before):
    end = time.monotonic() + 10
    while (look(one), look(other)) != before:
        assert time.monotonic() < end and 'climbs' in one, (one, other, before, look(one), look(other))
def usable(directory):
    os.mkdir(directory + '/new'); open(directory + '/new/f', 'w').close(); os.unlink(directory + '/new/f'); os.rmdir(directory + '/new')
for first, second in itertools.permutations(ways, 2):
    for name in names:
        one, other = first + '/' + name, second + '/' + name
        before = look(one), look(other)
        is_directory = os.path.isdir(one) and not os.path.islink(one)
        try:
            os.rename(one, other); assert not is_directory, one
        except OSError as error:
            # The kernel would take the directory of the other name for removed.
            assert is_directory and error.errno == 16, (one, other, error)
        for way in ways:
            if os.path.isdir(way + '/' + name) and not os.path.islink(way + '/' + name): usable(way + '/' + name)
        settles(one, other, before)
        assert libc.renameat2(-100, one.encode(), -100, other.encode(), 1) == -1 and ctypes.get_errno() == 17, 'noreplace'
        assert libc.renameat2(-100, one.encode(), -100, other.encode(), 2) == 0, ('exchange', one, other, ctypes.get_errno())
        for way in ways:
            if os.path.isdir(way + '/' + name) and not os.path.islink(way + '/' + name): usable(way + '/' + name)
        settles(one, other, before)
for first, second in itertools.permutations(ways, 2):
    try:
        os.rename(first + '/doc/none', second + '/elsewhere'); raise SystemExit('renamed')
    except OSError as error:
        assert error.errno == 18, error
END
        python3 onto.py $R $I $L; whole"#,
    );
}

/// cp, mv, rsync, tar and unison, when they copy or move an item or what is in it onto itself, by whichever
/// of its names, lose nothing.
#[test]
fn tools_lose_nothing_of_what_they_are_given_twice() {
    let env = environment();
    sh(
        &env,
        r#"for pair in "$I $R" "$R $I" "$L $R" "$R $L" "$I $L"; do set -- $pair
            no cp -aT $1 $2; whole; no cp -a $1/. $2/; whole; cp -aT $1 $2 2> why || true; grep -q 'same file' why; whole
            for p in doc/file plain doc/inside absolute empty doc/none doc/sub doc pipe; do
                no mv -T $1/$p $2/$p; no mv -fT $1/$p $2/$p; no cp -aT $1/$p $2/$p; whole
            done
            no mv -T $1/climbs $2/climbs; whole
            mv -n $1/plain $2/plain || true; mv -f $1/doc/none $2/doc/ 2> /dev/null || true; whole
            rsync -a --remove-source-files --exclude climbs $1/ $2/ 2> /dev/null || true; portrait > now; diff <(grep -v 'plain\|inside\|absolute' before) <(grep -v 'plain\|inside\|absolute' now)
            rsync -aH --delete --exclude climbs $1/ $2/; rsync -aHc --inplace --exclude climbs $1/ $2/
            ln -sfn target $R/plain; ln -sfn ../doc/file $R/doc/inside; ln -sfn /etc/hosts $R/absolute; whole
            tar -C $1 --exclude climbs -c . | tar -x -C $2 2> /dev/null || true; portrait > now; diff <(grep -v hard before) <(grep -v hard now) > /dev/null || { diff before now; exit 1; }
            cp -a $1 $2/doc/ 2> why && exit 1; grep -q 'into itself' why; rm -rf $R/doc/$(basename $1); whole
        done"#,
    );
}

/// unison, whose two roots are the two names of one item, changes nothing in it.
#[test]
fn unison_finds_nothing_to_do_between_two_names() {
    let env = environment();
    sh(
        &env,
        r#"export UNISON=$PWD/unison; rm $R/pipe $R/doc/climbs $R/climbs; portrait > before
        unison -batch -auto -links true $R $I > said 2>&1 || true; whole
        echo new > $R/doc/file; portrait > before; unison -batch -auto -links true $R $I >> said 2>&1 || true
        portrait | diff before -"#,
    );
}

/// A copy of an item into itself, by another of its names, ends.
#[test]
fn a_copy_into_itself_ends() {
    let env = environment();
    sh(
        &env,
        r#"for pair in "$I $R" "$R $I" "$L $R" "$R $L"; do set -- $pair
            no timeout 20 cp -a $1 $2/doc/; [ $(find $R -type d | wc -l) -lt 20 ]; rm -rf $R/doc/$(basename $1); whole
        done"#,
    );
}
