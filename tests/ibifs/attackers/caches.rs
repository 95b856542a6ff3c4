//! The cache of `ibifs world` below a directory that others may write.

use crate::world::World;

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
