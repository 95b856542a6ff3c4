//! Above the items: who may mint, make levels, remove items, say how they are related, and learn it.

use crate::support::{Needs, TestEnv};

/// Users in scripts: `as alice COMMAND...`; alice and bob share the group 60010.
const USERS: &str = "
    as() { local who=$1; shift; case $who in
        alice) setpriv --reuid 60001 --regid 60001 --groups 60010 \"$@\";;
        bob) setpriv --reuid 60002 --regid 60002 --groups 60010 \"$@\";;
    esac; }
    # The item of the label $2 of the user $1.
    of() { local to; to=$(as $1 readlink A/.mint/.$2) && echo A/${to#../}; }
    # What must be refused, for want of a permission.
    no_() { local printed; if printed=$(\"$@\" 2>&1); then echo \"allowed: $*\"; exit 1; fi
        [[ $printed == *'Permission denied'* || $printed == *'Operation not permitted'* ]] || { echo \"$*: $printed\"; exit 1; }; }
";

/// A mounted Archive and three items: of alice for all, of alice alone, of bob.
fn environment() -> TestEnv {
    environment_on(TestEnv::new())
}

fn environment_on(env: TestEnv) -> TestEnv {
    env.sh(&format!(
        "{USERS} chmod 755 .; mkdir A; ibifs init A.store --host archive-a.example.org > /dev/null; ibifs mount A.store A
         chmod 1777 A; for i in open:alice closed:alice bobs:bob; do as ${{i#*:}} mkdir -p A/.mint/${{i%:*}}/doc; done
         for i in open:alice closed:alice bobs:bob; do at=$(of ${{i#*:}} ${{i%:*}}); echo ${{i%:*}}=$at; echo ${{i%:*}}_p=A/$(ibip $at); done > names
         . ./names; for i in $open $closed; do as alice sh -c \"echo text > $i/doc/f; echo title: T > $i/.ibi.metadata\"; done
         as alice setfattr -n user.ibi.nextedition -v ${{bobs#A/}} $closed; as alice setfattr -n user.ibi.nextedition -v ${{closed#A/}} $open
         chmod 700 $closed; year=$(dirname $open); chmod 777 $year; echo year=$year >> names",
    ));
    env
}

/// Runs a script among those users and items.
#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{USERS} . ./names\n{script}"))
}

/// Of an item that a user may not enter it learns its name, and that there is one.
#[test]
fn what_lies_in_an_item_is_for_those_who_may_read_it() {
    let env = environment_on(TestEnv::with(Needs::AccessLists));
    sh(
        &env,
        "for i in $closed $closed_p; do
             for tail in ! : + '+(pt)' ':(oai_dc)' '?GetFileList' '?GetLastEdition' '?GetMetadata'; do
                 no_ as bob readlink -v \"$i$tail\"; no_ as bob cat \"$i$tail\"; no_ as bob stat \"$i$tail\"
             done
             no_ as bob getfattr -n user.ibi.nextedition $i; no_ as bob getfattr -n user.ibi.state $i
             no_ as bob ls $i; no_ as bob cat $i/.ibi; as bob stat $i > /dev/null; as bob ls -d $i > /dev/null
             as alice readlink \"$i!\" > /dev/null; as alice cat \"$i:\" \"$i:(oai_dc)\" \"$i?GetFileList\" | grep -q doc/f
             cat \"$i:\" > /dev/null
         done
         as bob readlink \"$open!\" > /dev/null; as bob cat \"$open:(oai_dc)\" | grep -q '>T<'
         # Who may search and not list learns no more than whoever may not.
         chmod 711 $closed; no_ as bob cat \"$closed:\"; no_ as bob readlink -v \"$closed!\"
         # By an access control list as well as by a mode, and no longer when that is taken away.
         chmod 700 $closed; setfacl -m u:60002:rx $closed; as bob cat \"$closed:\" > /dev/null; as bob readlink \"$closed!\" > /dev/null
         setfacl -b $closed; no_ as bob cat \"$closed:\"
         # By a group.
         chown 60001:60010 $closed; chmod 750 $closed; as bob cat \"$closed_p?GetFileList\" > /dev/null; chmod 700 $closed",
    );
}

/// The texts that ibifs makes of an item's files show no user what the user could not read.
#[test]
fn records_and_lists_are_made_of_what_the_reader_may_read() {
    let env = environment();
    sh(
        &env,
        "as alice chmod 600 $open/.ibi.metadata; no_ as bob cat \"$open:\"; no_ as bob cat \"$open:(oai_dc)\"
         as alice cat \"$open:(oai_dc)\" | grep -q '>T<'; cat \"$open_p:(oai_dc)\" | grep -q '>T<'
         as bob cat \"$open?GetFileList\" > before; as alice mkdir $open/doc/private; as alice touch $open/doc/private/name
         as bob cat \"$open?GetFileList\" | grep -q private/name; as alice chmod 711 $open/doc/private
         no_ as bob cat \"$open?GetFileList\"; as alice cat \"$open?GetFileList\" | grep -q private/name
         # The metadata that are an item of their own.
         as alice rm $open/.ibi.metadata; as alice mkdir -p A/.mint/record/doc; record=$(of alice record)
         as alice sh -c \"printf '%%T Of the record\\n%%A Nobody\\n' > $record/doc/r.refer\"
         as alice setfattr -n user.ibi.metadata -v ${record#A/} $open
         as bob cat \"$open:(oai_dc)\" | grep -q 'Of the record'
         as alice chmod 600 $record/doc/r.refer; no_ as bob cat \"$open:(oai_dc)\"; as alice chmod 644 $record/doc/r.refer
         as alice chmod 700 $record; no_ as bob cat \"$open:(oai_dc)\"; as alice cat \"$open:(oai_dc)\" | grep -q 'Of the record'",
    );
    // A store that no other user may enter is served as any other.
    sh(
        &env,
        "chmod 700 A.store; as bob cat \"$bobs?GetFileList\" \"$bobs:(oai_dc)\" > /dev/null",
    );
}

/// Relations are declared by users who may write in the item's directory, in every way to declare them.
#[test]
fn relations_are_declared_by_those_who_may_write_in_the_item() {
    let env = environment_on(TestEnv::with(Needs::AccessLists));
    sh(
        &env,
        "for i in $open $open_p; do
             no_ as bob ln -s ../../../${bobs#A/} \"$i+(pt)\"; no_ as bob ln -sfn ../../../${bobs#A/} \"$i!\"
             no_ as bob mkdir \"$i+(fr)\"; no_ as bob rm \"$i!\"; no_ as bob sh -c \"echo title: B > '$i:~'; mv '$i:~' '$i:'\"
             no_ as bob setfattr -n user.ibi.nextedition -v ${bobs#A/} $i; no_ as bob setfattr -x user.ibi.nextedition $i
             no_ as bob sh -c \"echo > $i/.ibi\"
         done
         [ \"$(readlink \"$open!\")\" = ../../../${bobs#A/} ]
         as alice ln -s ../../../${bobs#A/} \"$open+(pt)\"; as bob readlink \"$open+(pt)\" | grep -q ${bobs#A/}
         as alice mkdir \"$open+(fr)\"; as alice setfattr -x user.ibi.nextedition $open
         [ $(stat -c %u $open/.ibi $(as bob readlink -f \"$open+(fr)\")/.ibi | sort -u) = 60001 ]
         # By an access control list.
         as alice setfacl -m u:60002:rwx $open; as bob ln -s ../../../${bobs#A/} \"$open+(de)\"; as bob rm \"$open+(de)\" || true
         as bob setfattr -n user.ibi.language -v en $open; as alice setfacl -b $open
         no_ as bob setfattr -n user.ibi.language -v de $open",
    );
}

/// Items and levels are made and removed by those who may write in the directory above, whatever the
/// tree: that of a prefix is as the root is, and lets no user remove what lies elsewhere.
#[test]
fn items_are_removed_by_those_who_may_remove_them() {
    let env = environment();
    sh(
        &env,
        "chmod 1777 A.store/col/${year#A/}; as alice mkdir A/.mint/gone; gone=$(of alice gone); gone_p=A/$(ibip $gone)
         chmod 777 A
         no_ as bob rmdir $gone; no_ as bob rmdir $gone_p
         chmod 755 $year; no_ as bob rmdir $gone; no_ as bob rmdir $gone_p
         # Its owner may, whatever the mode of the level on the disk.
         as alice rmdir $gone_p; no ls $gone; chmod 1777 A.store/col/${year#A/}
         # Levels, and who may make them.
         as alice mkdir A/x.org A/x.org/y A/x.org/y/2001; as alice mkdir A/x.org/y/2001/01.02.03.04
         no_ as bob mkdir A/x.org/z; no_ as bob mkdir A/x.org/y/2001/01.02.03.05
         no_ as bob rmdir A/x.org/y/2001/01.02.03.04; as alice rmdir A/x.org/y/2001/01.02.03.04; as alice rmdir A/x.org/y/2001
         [ $(stat -c %u:%g A/x.org/y) = 60001:60001 ]; chmod 755 A; no_ as bob mkdir A/q.org",
    );
}

/// Users who may write in the root may mint: by its mode, its group, its access control list, and no longer than that.
#[test]
fn minting_is_for_those_who_may_write_in_the_root() {
    let env = environment_on(TestEnv::with(Needs::AccessLists));
    sh(
        &env,
        "chmod 755 A; no_ as alice mkdir A/.mint/x1; no_ as bob mkdir A/.mint/x2
         chgrp 60010 A; chmod 775 A; as alice mkdir A/.mint/x3; as bob mkdir A/.mint/x4
         chgrp 0 A; chmod 755 A; no_ as bob mkdir A/.mint/x5
         setfacl -m u:60002:rwx A; as bob mkdir A/.mint/x6; no_ as alice mkdir A/.mint/x7; setfacl -b A; no_ as bob mkdir A/.mint/x8
         prefix=$(dirname $bobs_p); [ \"$(getfacl -c A)\" = \"$(getfacl -c A/.mint)\" ]
         setfacl -m u:60002:rwx A; [ \"$(getfacl -c A)\" = \"$(getfacl -c A/.mint)\" ]; [ \"$(getfacl -c A)\" = \"$(getfacl -c $prefix)\" ]",
    );
}

/// Users who may write in the root may make an IBIp prefix, and then an item below it, as when an item is copied in by
/// its IBIp; no user needs a permission in the store's own directories.
#[test]
fn prefixes_are_made_by_those_who_may_write_in_the_root() {
    let env = environment_on(TestEnv::with(Needs::AccessLists));
    sh(
        &env,
        "stat -c '%a %U' A.store/ibip | grep -qx '755 root'
         chmod 755 A; no_ as bob mkdir A/8JMKD3MGP8W; no_ as bob mkdir A/x.org
         setfacl -m u:60002:rwx A; as bob sh -c 'umask 077; mkdir -p A/8JMKD3MGP8W/34PGRBS'
         [ $(stat -c %u A/8JMKD3MGP8W/34PGRBS) = 60002 ]; as bob sh -c 'echo text > A/8JMKD3MGP8W/34PGRBS/f'
         as bob mkdir A/8JMKD3MGPBW; no mkdir A/8JMKD3MGPBW; no mkdir A/8jmkd3mgpbw; no_ as alice rmdir A/8JMKD3MGPBW
         as bob rmdir A/8JMKD3MGPBW; no ls A/8JMKD3MGPBW; no ls -d A.store/ibip/8JMKD3MGPBW
         stat -c '%a %U' A.store/ibip A.store/ibip/8JMKD3MGP8W | uniq | grep -qx '755 root'
         setfacl -b A; chmod 1777 A; as alice mkdir A/8JMKD3MGPBW; ibifs umount A; ibifs fsck A.store",
    );
}

/// An item or level that a user makes by its name gets from the level above what any directory does
/// from the one that it is made in: the default access control list, the set-group-ID bit, the group.
#[test]
fn what_is_made_by_name_inherits_as_natively() {
    let env = environment_on(TestEnv::with(Needs::AccessLists));
    let acls = [
        "",
        "u::rwx,g::r-x,o::---",
        "u::rwx,u:60002:rwx,g::r-x,m::rwx,o::---",
        "u::rwx,u:60002:rwx,g::rwx,m::r--,o::r--",
        "u::rw-,g::r--,g:60010:rwx,m::rwx,o::--x",
        "u::---,g::---,o::---",
    ];
    let mut number = 0;
    for acl in acls {
        for bits in ["0777", "2777"] {
            for mode in ["755", "700", "770", "000"] {
                number += 1;
                sh(
                    &env,
                    &format!(
                        "mkdir -p native A/y{number}.org/y/2001; year=A/y{number}.org/y/2001
                         for d in native $year; do
                             setfacl -bk $d; chown 0:60020 $d; chmod {bits} $d
                             test -z '{acl}' || setfacl -d -m '{acl}' $d
                             as alice sh -c \"umask 027; mkdir -m {mode} $d/01.01.01.01; umask 077; mkdir $d/01.01.01.02\"
                             (cd $d; for i in 01.01.01.0[12]; do getfacl $i; stat -c '%a %u %g' $i; done) > printed-${{d%%/*}}
                             rm -r $d/01.01.01.0[12]; test $d != native || rmdir native
                         done
                         diff printed-native printed-A"
                    ),
                );
            }
        }
    }
}

/// A minted item is its maker's, with the mode that its umask leaves. Files that ibifs makes above and beside it are
/// for all to read, whatever umask the daemon or the last caller has.
#[test]
fn umasks_count_for_what_a_caller_makes_alone() {
    for umask in ["000", "027", "077"] {
        let env = TestEnv::new();
        env.sh(&format!(
            "{USERS} chmod 755 .; mkdir A; (umask {umask}; ibifs init A.store --host archive-a.example.org > /dev/null; ibifs mount A.store A)
             chmod 755 A.store; [ $(stat -c %a A A.store/staging A.store/deleted | sort -u) = 755 ]; chmod 1777 A
             as alice bash -c 'umask 077; mkdir A/.mint/private A/.mint/private/doc; for i in 1 2 3 4 5 6 7 8; do mkdir A/.mint/private/doc/$i & done; wait
                               umask 002; mkdir A/.mint/shared; umask 000; mkdir A/.mint/all
                               umask 777; mkdir A/.mint/private/doc/none; rmdir A/.mint/private/doc/none'
             private=$(of alice private); shared=$(of alice shared); all=$(of alice all)
             [ \"$(stat -c %a:%u:%g $private $shared $all $private/doc | xargs)\" = \\
               '700:60001:60001 775:60001:60001 777:60001:60001 700:60001:60001' ]
             [ \"$(stat -c %a:%u $private/.ibi $shared/.ibi $all/.ibi | sort -u)\" = 644:60001 ]
             # New levels: an item that came by its IBIp goes to the place that its sidecar names.
             mkdir -p A/8JMKD3MGP8W; as alice bash -c \"umask 077; touch A/.mint/private/doc/f\"
             bash -c 'umask 077; mkdir A/8JMKD3MGP8W/34PGRBS; touch A/8JMKD3MGP8W/34PGRBS/x
                      echo \"ibi {{rep dpi.inpe.br/banon/1999/01.09.22.14 ibip 8JMKD3MGP8W/34PGRBS}}\" > A/8JMKD3MGP8W/34PGRBS/.ibi'
             [ $(cd A.store/col; stat -c %a dpi.inpe.br dpi.inpe.br/banon dpi.inpe.br/banon/1999 | sort -u) = 755 ]
             rm -r A/dpi.inpe.br/banon/1999/01.09.22.14; [ $(stat -c %a A.store/deleted/col/dpi.inpe.br/banon/1999) = 755 ]
             [ $(stat -c %a A.store/deleted/col/dpi.inpe.br/banon/1999/01.09.22.14) = 600 ]
             ibifs umount A; [ $(stat -c %a A.store/ledger) = 644 ]"
        ));
    }
}
