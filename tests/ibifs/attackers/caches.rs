//! The cache of `ibifs world` below a directory that others may write.

use crate::world::World;

const OF_OTHERS: &str = "ibifs: the cache PATH belongs to another user, or others may write it; name another directory with --cache\n1\n";
const FOREIGN: &str =
    "ibifs: PATH is not empty and not a cache; name another directory with --cache\n1\n";

/// A user who renames the cache of a process of root and puts a link there leads no file of that process elsewhere.
#[test]
fn a_cache_that_was_renamed_is_the_same_one() {
    let world = World::new();
    world.prints(
        r#"chmod 755 .; mkdir -m 777 open; mkdir -p victim/{new,files,pieces,items,lists,digests,pins,levels}
        echo precious > victim/new/0; ibifs world M --archive $PROXY --cache open/C; P=$(cat open/C/lock)
        setpriv --reuid 1001 --regid 1001 --clear-groups sh -c "mv open/C open/old && ln -s $PWD/victim open/C"
        cat M/$one/doc/x.txt; cmp M/$one/doc/big A/$one/doc/big; test -n "$(find open/old/pieces open/old/files -type f)"
        ibifs umount M; waits is_over $P; find victim -type f -exec grep -H . {} +; test ! -e open/old/socket"#,
        "text\nvictim/new/0:precious",
    );
}

/// A link that a stranger has put in the place of a cache leads no process of root to another directory, whether it is
/// empty or not; and what is no cache is neither emptied nor filled, whoever leads there. Root's own links are followed.
#[test]
fn what_a_stranger_links_to_is_no_cache() {
    let world = World::new();
    world.prints(
        r#"chmod 755 .; mkdir -m 777 open; mkdir -p victim/new victim/sub/new empty real; echo precious | tee victim/new/0 > victim/sub/new/0
        as() { setpriv --reuid 1001 --regid 1001 --clear-groups "$@"; }
        as ln -s $PWD/victim open/a; as ln -s $PWD/empty open/b; as ln -s $PWD/victim open/c; as ln -s $PWD/missing open/d
        for to in open/a open/a/ open/a/. open/b open/c/sub open/d victim; do complains ibifs world M --archive $PROXY --cache $to; done
        find victim empty | sort; test ! -e missing; ln -s real mine; mkdir real/lost+found; ibifs world M --archive $PROXY --cache mine
        cat M/$one/doc/x.txt; ls real | wc -l; ibifs umount M; waits is_over $(cat mine/lock)"#,
        &format!(
            "{}{FOREIGN}ibifs: the cache PATH: File exists (os error 17); name another directory with --cache\n1\n{FOREIGN}\
             empty\nvictim\nvictim/new\nvictim/new/0\nvictim/sub\nvictim/sub/new\nvictim/sub/new/0\ntext\n11",
            OF_OTHERS.repeat(4)
        ),
    );
}

/// A stranger exchanges the cache of a process of root for a directory of his own, in which a process of his says that
/// it has mounted. That process is not queried.
#[test]
fn a_process_of_a_stranger_is_not_asked_for_a_mount() {
    let world = World::new();
    world.prints(
        r#"chmod 755 .; mkdir -m 777 open; mkdir N; ibifs world M --archive $PROXY --cache open/C
        setpriv --reuid 1001 --regid 1001 --clear-groups /usr/bin/python3 -c '
import ctypes, os, socket, threading
def exchange():
    libc = ctypes.CDLL(None)
    while os.path.exists("open/on"): libc.renameat2(-100, b"open/C", -100, b"open/D", 2)
os.mkdir("open/D"); open("open/on", "w").close()
s = socket.socket(socket.AF_UNIX); s.bind("open/D/socket"); s.listen(99)
threading.Thread(target=exchange, daemon=True).start()
while True:
    c, _ = s.accept(); open("open/asked", "w").close()
    while c.recv(9999): pass
    c.send(b"ready\n"); c.close()' 2> /dev/null & S=$!
        waits test -e open/on
        for n in $(seq 10); do ibifs world N --archive $PROXY --cache open/C 2> /dev/null || continue; mountpoint -q N && ibifs umount N || echo deceived; done
        rm open/on; kill $S; wait $S 2> /dev/null || true; test ! -e open/asked || echo asked; ibifs umount M"#,
        "",
    );
}
