//! Stores on filesystems that lack what ext4 has.

use crate::support::TestEnv;

/// Without RENAME_NOREPLACE (renameat2(2)), as on bindfs, CephFS, GlusterFS and NFS, everything is made and moved, and
/// nothing is replaced.
#[test]
fn a_filesystem_without_noreplace() {
    let env = TestEnv::new().on_bindfs().with_a().with_b();
    env.prints(
        r#"mkdir dir; no python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); sys.exit(libc.renameat2(-100, b"dir", -100, b"new", 1) != 0)'
        one=$(ibifs mint A | head -n 1); two=$(ibifs mint A --edition-of A/$one | head -n 1); three=$(mint A label)
        echo text > A/$one/doc/x; test "$(readlink "A/$one!")" = ../../../$two; test $three = $(rep A/.mint/label)
        cp -a A/$one B/$(dirname $one) 2> /dev/null || { mkdir -p B/$(dirname $one); cp -a A/$one B/$(dirname $one); }
        state B/$one; echo; cat B/$one/doc/x
        # An item that came by its IBIp moves when its sidecar names its rep.
        mkdir -p A/8JMKD3MGP7W/3EPGUE5
        printf 'ibi {rep sid.inpe.br/mtc-m19/2013/09.04.12.27.57 ibip 8JMKD3MGP7W/3EPGUE5}\n' > A/8JMKD3MGP7W/3EPGUE5/.ibi
        ls A/sid.inpe.br/mtc-m19/2013
        ibifs export A/$one --bagit bags | tail -n 1; rm -r A/$two; no ls A/$two; ibifs umount A; ibifs umount B
        for n in $(seq 20); do ibifs mint A.store; done | sort | uniq -d
        ibifs fsck A.store; ibifs fsck B.store"#,
        "Copy\ntext\n09.04.12.27.57\n1 item: 1 written, 0 unchanged\n24 items, 0 findings\n2 items, 0 findings",
    );
}

/// What the filesystem of a store cannot do is said when the store is made.
#[test]
fn what_a_filesystem_cannot_do_is_said() {
    let on_disk = TestEnv::new();
    on_disk.prints(
        "ibifs init s --host a.example.org 2>&1 > /dev/null; ls s/staging",
        "",
    );
    let env = TestEnv::new().on_bindfs();
    env.prints(
        "ibifs init s --host a.example.org 2>&1 > /dev/null | cut -d: -f1-3; ls s/staging",
        "ibifs: notice: the filesystem of the store has no RENAME_NOREPLACE
ibifs: notice: the filesystem of the store has no birth times of files",
    );
}
