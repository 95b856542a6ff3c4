//! Root deposits directories in which another user may write: what that user puts or exchanges there changes nothing
//! outside of them, and leads nowhere into the store.

use crate::support::{Needs, TestEnv};

/// Users 1001 and 1002, a directory of 1001's and one for all, on the filesystem of a store that is mounted; and `tries`,
/// which runs a command that may be refused and must end.
const FIELD: &str = r#"
    chmod 755 .; mkdir A; ibifs init A.store --host archive-a.example.org > /dev/null
    ibifs mount -o allow_other A.store A; chmod 1777 A
    install -d -o 1001 -g 1001 theirs; install -d -m 1777 incoming
    echo precious > precious; chmod 600 precious
    mint A secret > secret; echo 'top secret' > A/$(< secret)/doc/secret; chmod 700 A/$(< secret)
    cat > names <<'END'
as() { setpriv --reuid=1001 --regid=1001 --clear-groups env PATH=/usr/bin:/bin "$@"; }
other() { setpriv --reuid=1002 --regid=1002 --clear-groups env PATH=/usr/bin:/bin "$@"; }
tries() { local status=0; timeout -k 1 120 "$@" > said 2>&1 || status=$?; [ $status -lt 124 ] || { echo "status $status: $*" >&2; exit 1; }; return $status; }
refuses() { ! tries "$@"; }
# Waits for the other process, but not for ever.
until_ready() { local turn; for turn in {1..6000}; do [ ! -s ready ] || return 0; sleep 0.01; done; return 1; }
END
"#;

pub fn field() -> TestEnv {
    let env = TestEnv::with(Needs::HardLinks);
    env.sh(FIELD);
    env
}

#[track_caller]
pub fn sh(env: &TestEnv, script: &str) {
    env.sh(&format!(". ./names\n{script}"));
}

/// A mark that is a link, or its temporary name of earlier versions, is not written through.
#[test]
fn a_link_as_mark_is_not_written_through() {
    let env = field();
    sh(
        &env,
        r"as sh -c 'mkdir theirs/one theirs/two; echo x > theirs/one/f; echo x > theirs/two/f
                    ln -s ../../precious theirs/one/.ibifs-deposit-; ln -s ../../precious theirs/two/.ibifs-deposit'
        tries ibifs mint A --from theirs/one; [ $(< precious) = precious ]; [ ! -e theirs/one ]; [ -e A/$(head -n 1 said)/f ]
        ibifs ls A > before; refuses ibifs mint A --from theirs/two; [ $(< precious) = precious ]; [ -e theirs/two/f ]
        ibifs ls A | diff before -; grep -q 'is not a mark' said",
    );
}

/// A mark of another user names no item, also if it is complete or a file of root's that others may write.
#[test]
fn a_mark_of_another_user_names_no_item() {
    let env = field();
    sh(
        &env,
        r#"marked() { printf '%s\n%s\ndirectory %s\n' $(< secret) $(ibip A/$(< secret)) "$(stat -c '%d %i' theirs/$1)"; }
        for name in short whole written gone; do as sh -c "mkdir -m 777 theirs/$name; echo x > theirs/$name/f"; done
        { cat secret; echo; } > text; as cp text theirs/short/.ibifs-deposit
        marked whole > text; chmod 644 text; as cp text theirs/whole/.ibifs-deposit
        install -m 666 /dev/null theirs/written/.ibifs-deposit; marked written > text; as sh -c 'cat text > theirs/written/.ibifs-deposit'
        { marked gone; echo copied; } > text; as cp text theirs/gone/.ibifs-deposit
        for name in short whole written gone; do
            refuses ibifs mint A --from theirs/$name; grep -q 'is not a mark' said; [ -e theirs/$name/f ]
        done
        # A mark that root has made for another directory.
        mkdir own; marked whole > theirs/whole/mark; chmod 600 theirs/whole/mark; as mv -f theirs/whole/mark theirs/short/.ibifs-deposit
        refuses ibifs mint A --from theirs/short; [ -e theirs/short/f ]
        [ "$(stat -c '%u %a' A/$(< secret))" = '0 700' ]; [ "$(ls A/$(< secret))" = doc ]; no as cat A/$(< secret)/doc/secret"#,
    );
}

/// In a directory for all, a user's mark does not make root remove what others have put there.
#[test]
fn a_mark_removes_nothing_of_others() {
    let env = field();
    sh(
        &env,
        r"other sh -c 'mkdir incoming/thesis; echo text > incoming/thesis/thesis.tex'
        as sh -c '{ cat secret; echo; echo copied; } > incoming/.ibifs-deposit'
        tries ibifs mint A --from incoming && is_refused=n || is_refused=y; [ -e incoming/thesis/thesis.tex ]; [ $is_refused = y ]
        rm incoming/.ibifs-deposit; tries ibifs mint A --from incoming; [ ! -e incoming ]
        [ $(< A/$(head -n 1 said)/thesis/thesis.tex) = text ]; [ $(stat -c %u A/$(head -n 1 said)/thesis) = 1002 ]",
    );
}

/// A FIFO, a directory, a link to a device: whatever is in the place of the mark, the command ends.
#[test]
fn nothing_in_the_place_of_the_mark_is_waited_for() {
    let env = field();
    sh(
        &env,
        r"for make in mkfifo mkdir 'ln -s /dev/zero'; do
            as sh -c 'mkdir theirs/dir; echo x > theirs/dir/f'; as $make theirs/dir/.ibifs-deposit
            refuses ibifs mint A --from theirs/dir; grep -q 'is not a mark' said; [ -e theirs/dir/f ]; rm -r theirs/dir
            as mkdir theirs/dir; as $make theirs/dir/.ibifs-deposit-; tries ibifs mint A --from theirs/dir; [ ! -e theirs/dir ]
        done",
    );
}

/// An item never gets the owner or the mode of another user's directory.
#[test]
fn an_item_stays_that_of_its_minter() {
    let env = field();
    sh(
        &env,
        r#"for keep in '' --keep; do
            as sh -c 'mkdir -m 777 theirs/dir; mkdir -m 777 theirs/dir/sub; echo x > theirs/dir/f'; touch -d @5 theirs/dir
            tries ibifs mint A --from theirs/dir $keep; item=A/$(head -n 1 said)
            [ "$(stat -c '%u %a %Y' $item)" = '0 755 5' ]; [ "$(stat -c '%u %a' $item/sub)" = '1001 777' ]; [ $(stat -c %u $item/f) = 1001 ]
            no as touch $item/new; rm -rf theirs/dir
        done"#,
    );
}

/// A directory that another user holds open, that user's or root's, does not become a directory of the store.
#[test]
fn a_descriptor_leads_nowhere_into_the_store() {
    let env = field();
    sh(
        &env,
        r#"as mkdir -p theirs/dir/sub; mkdir -p roots/dir/sub; echo x > roots/dir/sub/f
        inside=$(stat -c %i A.store A.store/col A.store/col/example.org | tr '\n' ' ')
        for dir in theirs/dir roots/dir; do
            exec 9< $dir/sub; tries ibifs mint A --from $dir 9<&-; [ ! -e $dir ]
            as python3 - $inside <<'END'
import os, sys
os.fchdir(9)
for depth in range(1, 8):
    try: number = os.stat("../" * depth).st_ino
    except OSError: break
    assert str(number) not in sys.argv[1:], depth
END
            exec 9<&-
        done
        [ "$(stat -c '%h %u' A/$(head -n 1 said)/sub/f)" = '1 0' ]"#,
    );
}

/// Exchanges the directory above a deposit for a link as soon as the deposit is complete.
const EXCHANGE: &str = r#"
import os, sys, time
mark, end = 'theirs/p/dir/.ibifs-deposit', time.monotonic() + 60
def look():
    try: found = os.lstat(mark)
    except OSError: return None
    return found.st_ino, found.st_size
seen = []
print('ready', flush=True)
while len(seen) < 2 and time.monotonic() < end:
    now = look()
    if now and now[1] and (not seen or seen[-1] != now): seen.append(now)
    if seen and not now: break
os.rename('theirs/p', 'theirs/q'); os.symlink(os.path.abspath('victim'), 'theirs/p')
"#;

/// While the directory is removed, nothing is removed of another to which its path leads by then. It lies on another
/// filesystem, from which all users' directories are copied, and the names removed one by one.
#[test]
fn nothing_is_removed_by_a_path() {
    let env = field();
    sh(
        &env,
        &format!(
            r#"cat > exchange.py <<'END'
{EXCHANGE}
END
            mkdir -p victim/dir; touch victim/dir/f{{1..400}}; mount -t tmpfs -o mode=777 none theirs
            as sh -c 'mkdir -p theirs/p/dir; for i in $(seq 400); do echo $i > theirs/p/dir/f$i; done'
            as python3 exchange.py > ready & until_ready
            tries ibifs mint A --from theirs/p/dir || true; wait
            [ $(ls victim/dir | wc -l) = 400 ]; [ -L theirs/p ]
            [ $(ls A/$(head -n 1 said) | wc -l) = 400 ]; [ -z "$(ls theirs/q)" ]"#
        ),
    );
}
