//! Inventories of items (`<ibi>?inventory`), from which `ibifs world` shows them.

use super::served::{Fixture, Served};
use crate::support::TestEnv;

fn served() -> Fixture {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"one=$(ibifs mint A | head -n 1) shut=$(ibifs mint A --edition-of A/$one | head -n 1)
        ibip=$(ibip A/$one); D=A/$one/doc; chmod 700 A/$shut; echo "one=$one shut=$shut ibip=$ibip D=$D" > vars
        echo text > $D/x; ln $D/x $D/y; ln -s x $D/link; mkdir $D/private; echo secret > $D/private/x; chmod 700 $D/private
        echo secret > $D/secret; chmod 600 $D/secret; mkfifo $D/pipe; echo 'title: Rain' > "A/$one:""#,
    );
    let served = Served::start(&env, "A.store");
    Fixture::new(env, served, ". ./vars")
}

/// It has what the public may read, and the relations to what the public may see.
#[test]
fn it_has_what_is_public() {
    served().prints(
        r#"curl -sf "$U/$one?inventory" > page; curl -sf "$U/$ibip?inventory" | cmp - page; head -n 1 page; tail -n 1 page
        sed -n '3,$s/^\([a-z]*\) \([0-9]*\) [0-9.]* \([^ ]*\).*/\1 \2 \3/p' page
        grep -cF "$shut" page || true; grep -c nextedition A/$one/.ibi; grep -c secret page || true
        chmod 755 A/$shut; curl -sf "$U/$one?inventory" | grep -cF "$shut"
        for name in $shut/private 8JMKD3MGP8W/34PGRBS; do curl -s -o /dev/null -w '%{http_code}\n' "$U/$name?inventory"; done
        chmod 700 A/$one; curl -s -o /dev/null -w '%{http_code}\n' "$U/$one?inventory""#,
        "inventory 1\nend\ndirectory 755 .\ntext 644 .ibi\ntext 644 .ibi.metadata\ndirectory 755 doc\nlink 777 doc/link\n\
         fifo 644 doc/pipe\nfile 644 doc/x\nfile 644 doc/y\n0\n1\n0\n1\n404\n404\n404",
    );
}

/// A reader of an inventory or a zip file gets no access control lists, and no other user more rights than the list
/// gave.
#[test]
fn modes_are_those_without_lists() {
    served().prints(
        r#"setfacl -m u:1234:rw $D/x; setfacl -m u:1234:rwx $D; stat -c '%a %n' $D $D/x | sed "s|$D|doc|"
        curl -sf "$U/$one?inventory" | sed -n 's/^\([a-z]*\) \([0-9]*\) [0-9.]* \(doc[^ ]*\).*/\1 \2 \3/p'
        curl -sf "$U/archive.cgi/$one" > z.zip; unzip -Z z.zip | sed -n 's/^\(-[^ ]*\) .* .*doc\/[xy]$/\1/p'"#,
        "775 doc\n664 doc/x\ndirectory 755 doc\nlink 777 doc/link\nfifo 644 doc/pipe\nfile 644 doc/x\nfile 644 doc/y\n\
         -rw-r--r--\n-rw-r--r--",
    );
}

/// Its entity tag changes with what is in the item, and with nothing else.
#[test]
fn its_tag_changes_with_the_item() {
    served().prints(
        r#"tag() { line etag "$U/$one?inventory"; }
        asks() { : > body; curl -s -o body -w "%{http_code} $1\n" -H "If-None-Match: $first" "$U/$one?inventory"; }
        first=$(tag); asks same; wc -c < body; ibifs mint A > /dev/null; cat $D/x > /dev/null; asks same
        echo more >> $D/x; asks written; first=$(tag); touch -d 2020-01-01 $D/x; asks touched; first=$(tag)
        chmod 640 $D/x; asks shut; first=$(tag); mv $D/y $D/z; asks renamed; first=$(tag); rm "$D/link"; asks removed
        chmod 644 $D/x; touch -d '1 hour ago' $D/x; first=$(tag); ibifs scrub A.store > /dev/null; asks scrubbed"#,
        "304 same\n0\n304 same\n200 written\n200 touched\n200 shut\n200 renamed\n200 removed\n200 scrubbed",
    );
}

/// Digests of pieces that a scrub has recorded are those of the record, by each name of a file, and none are computed.
#[test]
fn recorded_pieces_are_not_computed() {
    served().prints(
        r#"head -c 5000000 /dev/urandom > $D/big; touch -d '1 hour ago' $D/big; ibifs scrub A.store > /dev/null
        of=$(sha256sum $D/big | cut -c 1-64); split -b 4194304 --filter='sha256sum | cut -c 1-64' $D/big > pieces
        printf 'another text' | dd of=$D/big conv=notrunc bs=1 seek=4500000 status=none
        for name in col/$one/doc/big $one/big $ibip/doc/big; do curl -sfL "$U/$name?digests=0-15&of=$of" | cmp - pieces && echo recorded; done
        for name in col/$one/doc/big $one/big dav/$one/doc/big; do status "$U/$name?digests=0-15&of=${of//[0-9]/0}"; done
        curl -sf "$U/col/$one/doc/big?digests=0-15" | cmp -s - pieces || echo computed; status "$U/col/$one/doc/big?digests=2-3&of=$of" "#,
        "recorded\nrecorded\nrecorded\n404\n404\n404\ncomputed\n416",
    );
}

/// A large item is listed in pages, which have each entry once.
#[test]
fn a_large_item_has_pages() {
    served().prints(
        r#"mkdir -p $D/many/deep; python3 -c '
import os, sys
for number in range(45000): os.close(os.open("%s/%s%05d" % (sys.argv[1], "deep/" if number > 22000 else "", number), os.O_CREAT | os.O_WRONLY, 0o644))
' A.store/col/$one/doc/many; A=; url="$U/$one?inventory"; : > names
        while test -n "$url"; do curl -sf "$url" > page; head -n 1 page; sed -n '3,$p' page | grep -c ^file
            sed -n 's/^file [0-9]* [^ ]* \([^ ]*\) .*/\1/p' page >> names; url=$(sed -n "s|^more |$U/$one?inventory=|p" page); done
        sort names | uniq -d; diff <(cd A.store/col/$one; find doc -type f -perm -4 -not -path '*private*' | sort) <(sed 's/%2F/\//g' names | sort) && wc -l < names
        curl -sf "$U/$one?inventory=zzz" | tail -n +3; curl -sf "$U/$one?inventory=..%2F..%2F" | tail -n 1; curl -sf "$U/$one?inventory=%00" | tail -n 1"#,
        "inventory 1\n19994\ninventory 1\n19999\ninventory 1\n5009\n45002\nend\nmore doc/many/19996\nmore doc/many/19996",
    );
}
