//! stress-ng's filesystem stressors inside an item, in the long form.

use crate::support::{TestEnv, switch};

/// Stressors that check what they do; each is run by two processes.
const STRESSORS: [&str; 40] = [
    "access",
    "chdir",
    "chmod",
    "chown",
    "copy-file",
    "dentry",
    "dir",
    "dirdeep",
    "dirmany",
    "dnotify",
    "dup",
    "fallocate",
    "fcntl",
    "fiemap",
    "filename",
    "flock",
    "fpunch",
    "fstat",
    "getdent",
    "hdd",
    "inotify",
    "io",
    "iomix",
    "lease",
    "link",
    "locka",
    "lockf",
    "lockofd",
    "mmap",
    "msync",
    "open",
    "readahead",
    "rename",
    "revio",
    "seek",
    "symlink",
    "sync-file",
    "utime",
    "xattr",
    "mknod",
];

/// Each stressor for some seconds (`IBIFS_TEST_SECONDS`; without it this does nothing), with
/// passthrough and without: none fails, none finds anything wrong, and the store is sound.
#[test]
fn stress_ng_finds_nothing_wrong_inside_an_item() {
    let Some(seconds) = switch("IBIFS_TEST_SECONDS") else {
        return;
    };
    for passthrough in ["yes", "no"] {
        let env = TestEnv::new();
        env.sh(&format!(
            "ibifs init A.store --host archive-a.example.org; mkdir A
             ibifs mount -o passthrough={passthrough},allow_other A.store A
             mkdir -p A/.mint/it/doc; rep A/.mint/it > item"
        ));
        let mut wrong = Vec::new();
        for stressor in STRESSORS {
            let output = env.run(&format!(
                "mkdir -p A/$(< item)/stress-{stressor}
                 stress-ng --{stressor} 2 --chdir-dirs 2048 --verify --timeout {seconds}s --temp-path A/$(< item)/stress-{stressor} 2>&1"
            ));
            if !output.status.success() {
                let printed = String::from_utf8_lossy(&output.stdout).into_owned();
                wrong.push(format!("{stressor}, passthrough={passthrough}: {printed}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        env.sh("ls -A A/$(< item)/stress-*/; rm -r A/$(< item)/stress-*; ibifs umount A; ibifs fsck A.store");
    }
}
