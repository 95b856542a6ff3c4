//! The packages that users install, tried on a bare system: the Debian package on a new Debian, the static binary in
//! an empty directory, and the installation by cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{TestEnv, switch};

/// The directory where cargo has built the binary under test.
fn target() -> &'static Path {
    let binary = Path::new(env!("CARGO_BIN_EXE_ibifs"));
    binary.ancestors().nth(2).expect("a target directory")
}

/// Makes a package and gives where it is. What cargo has built for these tests stays where it is.
#[track_caller]
fn package(arguments: &[&str]) -> PathBuf {
    let output = Command::new("mnt/package")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", target())
        .stderr(Stdio::inherit())
        .output()
        .expect("mnt/package runs");
    assert!(output.status.success(), "mnt/package {arguments:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = PathBuf::from(said.lines().next_back().unwrap_or_default());
    assert!(path.is_file(), "made where it says: {said}");
    path
}

/// A new Debian in `root`, from where this machine has its own.
const NEW_DEBIAN: &str = r#"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
debootstrap --variant=minbase --include=plocate "$suite" root "$mirror" > debootstrap.log
rm -r root/etc/apt/sources.list*
cp -r /etc/apt/apt.conf.d /etc/apt/sources.list* root/etc/apt/
# As a kernel and an init make them.
mknod -m 666 root/dev/fuse c 10 229
ln -s ../proc/self/mounts root/etc/mtab
"#;

/// Runs a command in `root`. No mount namespace: a copy of all that is mounted would keep the disks of
/// other tests from being unmounted.
const INSIDE: &str = r#"
inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot root "$@"
}
mount -t proc proc root/proc
trap 'umount root/proc' EXIT
"#;

#[test]
fn the_debian_package_serves_on_a_new_debian_and_leaves_it_as_it_was() {
    let package = package(&["deb", "--built", "dev"]);
    let env = TestEnv::new();
    std::fs::copy(package, env.root().join("ibifs.deb")).expect("the package is copied");
    env.sh(NEW_DEBIAN);
    env.sh("cp ibifs.deb root/; cp root/etc/updatedb.conf before.conf");
    let inside = |script: &str| {
        std::fs::write(env.root().join("root/script"), script).expect("a script");
        env.sh(&format!("{INSIDE}inside bash -euo pipefail /script"))
    };
    inside("apt-get -qq update; apt-get -qq install -y ./ibifs.deb");
    // All that a user finds is there.
    inside(
        "cd /usr/share
        test $(zcat man/man1/ibifs.1.gz | grep -c '^.Dt IBIFS 1') = 1
        test $(zcat man/man8/mount.ibifs.8.gz | grep -c '^.Dt MOUNT.IBIFS 8') = 1
        test $(zcat man/pt_BR/man7/ibifs-tree.7.gz | grep -c '^.Dt IBIFS-TREE 7') = 1
        test \"$(readlink -f /sbin/mount.fuse.ibifs)\" = /usr/bin/ibifs
        test -f /usr/lib/systemd/system/ibifs@.service; test -f /usr/lib/systemd/system/ibifs-resolver.service; test -f /usr/lib/sysusers.d/ibifs.conf; test -f doc/ibifs/examples/Caddyfile; test -f /usr/lib/systemd/system/ibifs-scrub@.timer
        grep -q ibifs bash-completion/completions/ibifs
        grep -q '#compdef ibifs' zsh/vendor-completions/_ibifs
        grep -q 'complete -c ibifs' fish/vendor_completions.d/ibifs.fish
        source bash-completion/completions/ibifs; complete -p ibifs",
    );
    // A user who is not root works with it, and locate finds what is in the store once.
    let found = inside(
        "useradd -m ana; chmod 755 /home/ana
        su ana -c 'cd; ibifs init s.store --host archive-a.example.org; mkdir A; ibifs mount s.store A
            mkdir -p A/.mint/map/doc; echo text > A/.mint/map/doc/a-very-special-name; ibifs status A' >&2
        updatedb; locate a-very-special-name
        su ana -c 'cd; ibifs umount A; ibifs fsck s.store' >&2",
    );
    let stored = "/home/ana/s.store/col/example.org/archive-a/";
    assert!(
        found.starts_with(stored) && found.lines().count() == 1,
        "{found}"
    );
    inside("apt-get -qq purge -y ibifs; test ! -e /usr/bin/ibifs");
    env.sh("cmp before.conf root/etc/updatedb.conf; no ls root/usr/share/man/man1/ibifs*");
}

/// With `IBIFS_TEST_PACKAGES=1`: everything is built once more, for a target that rustup has to fetch.
#[test]
fn the_static_binary_needs_nothing_but_the_kernel() {
    if switch("IBIFS_TEST_PACKAGES").is_none() {
        return;
    }
    let package = package(&["static", "--profile", "dev"]);
    let env = TestEnv::new();
    std::fs::copy(package, env.root().join("ibifs.tar.gz")).expect("the archive is copied");
    env.sh(
        "mkdir -p root/tmp root/mnt root/proc root/dev; mknod -m 666 root/dev/fuse c 10 229
        mknod -m 666 root/dev/null c 1 3
        tar -xzf ibifs.tar.gz --strip-components 1 -C root; test -f root/share/man/man1/ibifs.1.gz",
    );
    env.sh(&format!(
        "{INSIDE}
        inside /bin/ibifs init /tmp/S --host archive-a.example.org
        inside /bin/ibifs mount /tmp/S /mnt
        mkdir -p root/mnt/.mint/map/doc; echo text > root/mnt/.mint/map/doc/file
        inside /bin/ibifs status --json /mnt; inside /bin/ibifs umount /mnt
        inside /bin/ibifs fsck /tmp/S; cat root/tmp/S/col/example.org/archive-a/*/*/doc/file"
    ));
}

/// The image of this test has the binary of the test with its libraries: the static one takes minutes to build. All
/// digests are right, the same files make the same image, and what is unpacked serves a store.
#[test]
fn the_image_serves_from_what_it_holds() {
    let env = TestEnv::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mnt/image");
    env.sh(&format!(
        "export SOURCE_DATE_EPOCH=1700000000; umask 077
        # What was built for a test is large, and need not be small.
        mkdir fast; gzip=$(command -v gzip); printf '#!/bin/sh\nexec %s -1 \"$@\"\n' $gzip > fast/gzip; chmod +x fast/gzip; PATH=$PWD/fast:$PATH
        {0} --binary {1} one.tar > said; test $(tail -n 1 said) = $PWD/one.tar; {0} --binary {1} two.tar > said; cmp one.tar two.tar
        mkdir layout root; tar -xf one.tar -C layout",
        script.display(),
        env!("CARGO_BIN_EXE_ibifs"),
    ));
    env.prints(
        r#"python3 - <<'END'
import gzip, hashlib, json, subprocess
def blob(of):
    data = open("layout/blobs/" + of["digest"].replace(":", "/"), "rb").read()
    assert hashlib.sha256(data).hexdigest() == of["digest"].split(":")[1] and len(data) == of["size"]
    return data
assert json.load(open("layout/oci-layout")) == {"imageLayoutVersion": "1.0.0"}
index = json.load(open("layout/index.json"))
[named] = index["manifests"]
manifest = json.loads(blob(named))
assert manifest["mediaType"] == named["mediaType"]
config = json.loads(blob(manifest["config"]))
[layer] = manifest["layers"]
packed = blob(layer)
assert ["sha256:" + hashlib.sha256(gzip.decompress(packed)).hexdigest()] == config["rootfs"]["diff_ids"]
subprocess.run(["tar", "-xzp", "-C", "root"], input=packed, check=True)
print(*config["config"]["Entrypoint"], *config["config"]["Cmd"], config["os"], config["created"])
END
        stat -c '%a %U %n' root root/tmp root/usr/bin/ibifs"#,
        "/usr/bin/ibifs serve --listen 0.0.0.0:8080 /var/lib/ibifs linux 2023-11-14T22:13:20Z\n\
         755 root root\n1777 root root/tmp\n755 root root/usr/bin/ibifs",
    );
    let printed = env.sh(&format!(
        "{INSIDE}
        inside /usr/bin/ibifs --version; inside /usr/bin/ibifs init /var/lib/ibifs/a --host archive-a.example.org > said
        one=$(inside /usr/bin/ibifs mint /var/lib/ibifs/a | head -n 1); echo text > root/var/lib/ibifs/a/col/$one/doc/f
        exec 3> listening; env -i PATH=/usr/bin /usr/sbin/chroot root /usr/bin/ibifs serve --listen 127.0.0.1:0 --metrics 127.0.0.1:0 /var/lib/ibifs/a >&3 & S=$!
        trap 'kill $S; wait $S; umount root/proc' EXIT
        for i in $(seq 200); do grep -q metrics listening && break; kill -0 $S; sleep .05; done
        grep -q '^Uid:.65534' /proc/$S/status
        curl -sSf $(sed -n 's,^serving.* \\(http[^ ]*\\)/$,\\1,p' listening)/col/$one/doc/f; curl -sSf $(sed -n 's,^metrics at \\(.*\\)/metrics,\\1,p' listening)/readyz"
    ));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed, format!("ibifs {version}\ntext\nok"));
}

#[test]
fn cargo_installs_it() {
    let env = TestEnv::new();
    let output = Command::new(env!("CARGO"))
        .args(["install", "--debug", "--locked", "--path", ".", "--root"])
        .arg(env.root())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", target())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    env.prints(
        "bin/ibifs --version",
        concat!("ibifs ", env!("CARGO_PKG_VERSION")),
    );
}
