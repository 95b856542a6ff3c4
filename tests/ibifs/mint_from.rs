//! `ibifs mint --from DIR`: a directory becomes what is in the new item.

use crate::support::{Needs, TestEnv};

/// A function `tree NAME` that makes a directory with what a directory can have.
const TREE: &str = r#"
tree() {
    mkdir -p $1/doc/sub $1/empty; echo text > $1/doc/file; ln $1/doc/file $1/doc/sub/hard
    ln -s ../doc/file $1/doc/link; mkfifo $1/fifo; truncate -s 1M $1/hole; setfattr -n user.colour -v red $1 $1/doc/file
    chmod 2750 $1; chmod 600 $1/doc/file; touch -d @5 $1/doc/file $1/doc; touch -d @7 $1
}
what() { (cd $1; find . ! -name .ibi -printf '%p %y %m %U:%G %n %T@ %l\n' | grep -v '^\. ' | sort; find . -name .ibi -o -type f -print | sort | xargs getfattr -d -m user.colour
          stat -c '%a %U %Y' .); }
"#;

/// On a store and in a mount, by rename and by copy, moved and kept: the item has all that the directory had.
#[test]
fn a_directory_becomes_an_item() {
    let env = TestEnv::with(Needs::HardLinks).with_a();
    env.sh(&format!(
        "{TREE}
         ibifs init S --host s.example.org > /dev/null; mkdir T; mount -t tmpfs none T; tree like; what like > expected
         for place in A S; do
             for dir in dir T/dir; do
                 for keep in '' --keep; do
                     cp -a like $dir; ibifs mint $place --from $dir $keep > names
                     if [ $place = A ]; then item=A/$(head -n 1 names); else item=S/col/$(head -n 1 names); fi
                     what $item > there; diff expected there; ls -A $item | grep -c . | grep -qx 5
                     if [ -z \"$keep\" ]; then [ ! -e $dir ]; else what $dir > kept; diff expected kept; rm -r $dir; fi
                     [ $place = S ] || what A/$(tail -n 1 names) | diff expected -
                 done
             done
         done
         # The digests have been recorded.
         for store in S A.store; do ibifs scrub $store > said; no grep -q recorded said; done
         find S/fixity A.store/fixity -name manifest-sha256.txt -exec cat {{}} + | grep -c ' doc/file' | grep -qx 8
         ibifs umount A; for store in S A.store; do ibifs fsck $store; done"
    ));
}

/// It goes together with the other options, and prints JSON as without it.
#[test]
pub fn a_relation_is_declared_as_well() {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "{TREE} mint A first > first; echo 'title: A' > A/$(< first)/.ibi.metadata
         for n in 1 2 3 4; do tree dir$n; done
         ibifs mint A --edition-of A/$(< first) --with-metadata --from dir1 --json > said
         next=$(getfattr --only-values -n user.ibi.nextedition A/$(< first)); grep -q \"$next\" said
         [ -e A/$next/doc/file ]; cmp A/$next/.ibi.metadata A/$(< first)/.ibi.metadata
         ibifs mint A --translation-of A/$(< first) --lang pt --from dir2; cat \"A/$(< first)+(pt)/doc/file\"
         ibifs umount A
         ibifs mint A.store --edition-of $next --from dir3 | head -n 1 > third
         echo 'title: B' > dir4/.ibi.metadata
         [ -e A.store/col/$(< third)/doc/file ]; [ ! -e dir3 ]; ibifs fsck A.store"
    ));
    env.complains(
        "ibifs mint A.store --edition-of $(< third) --with-metadata --from dir4",
        "'dir4/.ibi.metadata' is a metadata text of its own; leave --with-metadata out",
    );
    env.complains("ibifs mint A.store --keep", "--from");
}

/// A source that cannot become an item is refused before anything is minted.
#[test]
fn what_is_no_directory_of_its_own_is_refused() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A first > first; mkdir -p dir sub/deep with/deep T outer; ln -s dir link; touch file
         mount -t tmpfs none T; cp -a A.store outer/inner 2> /dev/null; rm -f outer/inner/lock
         printf 'ibi {rep example.org/x/2026/01.01.01.01}\\n' > with/deep/.ibi; ibifs ls A > before",
    );
    for (directory, status, why) in [
        ("link", 4, "'link' is a symbolic link"),
        ("link/", 4, "'link' is a symbolic link"),
        ("file", 4, "'file' is not a directory"),
        ("missing", 3, "missing: No such file or directory"),
        ("/", 4, "a filesystem is mounted at"),
        ("T", 4, "/T'; unmount it"),
        (".", 4, "a filesystem is mounted at"),
        ("outer", 4, "outer/inner' has a store in it"),
        ("outer/inner", 4, "outer/inner' has a store in it"),
        ("A.store/col/$(< first)/doc", 4, "lies in a store"),
        ("A/$(< first)/doc", 4, "lies in a store"),
        ("A/$(< first)", 4, "lies in a store"),
        ("with", 4, "deep/.ibi' is the sidecar of an item"),
    ] {
        let command = format!("ibifs mint A --from {directory}");
        env.complains(&command, why);
        env.exits(&command, status);
    }
    env.prints(
        "ibifs ls A | diff before - && ls with/deep/.ibi",
        "with/deep/.ibi",
    );
}

/// A user deposits through a mount of root what they may read and move, whether they may look into the store or
/// not, and nothing else.
#[test]
fn a_user_deposits_their_own() {
    let env = TestEnv::with(Needs::HardLinks);
    env.sh(&format!(
        "{TREE}
         mkdir bin A home; cp $(command -v ibifs) bin; chmod 755 .; chmod 777 home
         ibifs init A.store --host archive-a.example.org > /dev/null; ibifs mount -o allow_other A.store A; chmod 1777 A
         tree like; rm like/fifo; chown -R 65534:65534 like; cp -a like home/one; cp -a like home/two; cp -a like home/keep
         cp -a like home/secret; echo no > home/secret/doc/other; chmod 600 home/secret/doc/other
         mkdir foreign; cp -a like foreign/dir
         export HOME=$PWD/home; as() {{ setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=$PWD/bin:/usr/bin:/bin \"$@\"; }}
         what like > expected
         as ibifs mint A --from home/one | head -n 1 > name; [ ! -e home/one ]; what A/$(< name) | diff expected -
         chmod 700 A.store
         as ibifs mint A --from home/two | head -n 1 > name; [ ! -e home/two ]; what A/$(< name) | diff expected -
         as ibifs mint A --from home/keep --keep | head -n 1 > name; what A/$(< name) | diff expected -; what home/keep | diff expected -
         ibifs ls A > before
         ! as ibifs mint A --from foreign/dir 2> why; grep -q \"cannot be moved: Permission denied\" why
         ! as ibifs mint A --from home/secret 2> why; grep -q 'doc/other: Permission denied' why
         ibifs ls A | diff before -; what foreign/dir | diff expected -; ls home/secret/doc/other
         ibifs umount A; ibifs fsck A.store"
    ));
}

/// `--with-files`: the next edition has the files of the one before, in a store and in a mount, for root and for a user
/// without the right to enter the store; the one before keeps its own, and what was closed stays closed.
#[test]
fn the_next_edition_has_the_files_of_the_one_before() {
    let env = TestEnv::with(Needs::HardLinks);
    env.sh(&format!(
        "{TREE}
         mkdir bin A; cp $(command -v ibifs) bin; chmod 755 .
         ibifs init A.store --host archive-a.example.org > /dev/null; ibifs mount -o allow_other A.store A; chmod 1777 A
         as() {{ setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=$PWD/bin:/usr/bin:/bin \"$@\"; }}
         files() {{ (cd $1; find . -mindepth 1 ! -name '.ibi*' -printf '%p %y %m %s %T@ %l\n' | sort; find . -name '.ibi*' -o -type f -print | sort | xargs cat); }}
         for user in env as; do
             $user ibifs mint A > first; first=A/$(head -n 1 first); rmdir $first/doc; tree dir; rm dir/fifo
             [ $user = env ] || chown -R 65534:65534 dir
             $user cp -a dir/. $first; chmod 750 $first; echo 'title: Rain' > $first/.ibi.metadata; rm -r dir
             files $first > before
             $user ibifs mint A --edition-of A/$(tail -n 1 first) --with-files --with-metadata > next
             next=A/$(head -n 1 next); files $next | diff before -; files $first | diff before -
             grep -q Rain $next/.ibi.metadata
             grep -q $(tail -n 1 next) $next/.ibi; [ $(stat -c %a $next) = 750 ]
             [ $(stat -c %u $next) = $(stat -c %u $first) ]
             $user ibifs mint A --edition-of $next --with-files > third; third=A/$(head -n 1 third)
             files $third | diff before -; [ ! -e $third/.ibi.metadata ]
             touch $third/doc/new; [ ! -e $next/doc/new ]; last=$third
         done
         # A list gives the group less than the bits of its mask say.
         setfacl -m u:1:rx,g::- $last; ibifs mint A --edition-of $last --with-files > list
         [ $(stat -c %a A/$(head -n 1 list)) = 700 ]
         # What a user may not read is refused before anything is minted.
         ibifs mint A > shut; shut=A/$(head -n 1 shut); touch $shut/doc/own; chmod 600 $shut/doc/own; chmod 777 $shut $shut/.ibi; ibifs ls A > all"
    ));
    for (command, why) in [
        (
            "as ibifs mint A --edition-of A/$(head -n 1 shut) --with-files",
            "ermission denied",
        ),
        ("ibifs mint A --with-files", "--edition-of"),
        (
            "ibifs mint A --edition-of A/$(head -n 1 first) --with-files --from A",
            "cannot be used with",
        ),
        (
            "ibifs mint A --edition-of A --with-files --count 2",
            "cannot be used with",
        ),
        (
            "ibifs mint A --from A/$(head -n 1 first)",
            "--edition-of and --with-files",
        ),
    ] {
        let user = "as() { setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=$PWD/bin:/usr/bin:/bin \"$@\"; }";
        env.complains(&format!("{user}; {command}"), why);
    }
    env.sh("ibifs ls A | diff all -; ibifs umount A; 
         ibifs mint A.store --edition-of $(head -n 1 list) --with-files > last
         [ -e A.store/col/$(head -n 1 last)/doc/file ]; ibifs fsck A.store");
}
