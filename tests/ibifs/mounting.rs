//! Mounting as the system does it: mount(8), fstab(5), systemd.

mod autofs;
mod options;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Disk, Format, Needs, TestEnv};

/// What every script here may use. The store S is there, and the directory M.
const PRELUDE: &str = r#"
# The mount options of M that the kernel keeps, and its type.
options() { findmnt -no OPTIONS M | tail -n 1; }
kind() { findmnt -no FSTYPE M | tail -n 1; }
has() { [[ ,$(options), == *,$1,* ]]; }
# What the command $2 complains of, which fails.
refused() { local said=$1; shift; ! "$@" 2> refusal; grep -qF "$said" refusal || { cat refusal >&2; exit 1; }; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
"#;

/// Runs a script where the helpers are installed, as a package does it, and fstab is the environment's own
/// `fstab`; whatever it mounts is gone afterwards.
fn as_system(env: &TestEnv, script: &str) -> Output {
    std::fs::write(
        env.root().join("script"),
        format!("set -euo pipefail\ntrap 'umount -ql M || true' EXIT\n{PRELUDE}\n{script}"),
    )
    .expect("a script");
    env.run(
        "mkdir -p bin kept M; cp -f $(command -v ibifs) bin/; touch fstab; chmod 777 . M
         test -e S || ibifs init S --host archive.example.org > /dev/null
         export -f rep ibip state no daemon mint waits ends
         unshare -m bash -euc '
             sbin=$(readlink -f /sbin)
             mount --bind $sbin kept
             mount -t tmpfs -o mode=755 none $sbin
             ln -s $PWD/kept/* $sbin/
             ln -sf $PWD/bin/ibifs $sbin/mount.ibifs
             ln -sf $PWD/bin/ibifs $sbin/mount.fuse.ibifs
             mount --bind fstab /etc/fstab
             mount -t tmpfs none /dev
             for n in null:1:3 zero:1:5 urandom:1:9 fuse:10:229; do
                 IFS=: read -r name major minor <<< $n
                 mknod -m 666 /dev/$name c $major $minor
             done
             ln -s /proc/self/fd /dev/fd
             export PATH=$PWD/bin:$PATH
             exec bash script'",
    )
}

#[track_caller]
fn does(env: &TestEnv, script: &str) -> String {
    let output = as_system(env, script);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{complaint}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// A script that fails with this status, and complains in these words.
#[track_caller]
fn fails(env: &TestEnv, script: &str, status: i32, complaint: &str) {
    let output = as_system(env, script);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{script}\n{complained}");
    assert!(complained.contains(complaint), "{script}\n{complained}");
}

/// mount(8) and fstab(5) start what shows the items of other Archives, which a mount that is read-only for their sake
/// does not survive as one that is written to.
#[test]
fn mount_shows_other_archives() {
    let env = TestEnv::new();
    let printed = does(
        &env,
        r#"OUT=world=http://127.0.0.1:1,world=http://127.0.0.1:2,world-cache=$PWD/C
        mount -t fuse.ibifs -o ro,$OUT,world=fallback S M; findmnt -nro FSTYPE -R M; readlink M/8JMKD3MGP8W/34PGRBS
        pgrep -af -- "-- $PWD/M/.world\$" | grep -o 'resolver http[^ ]*'
        refused "world=fallback needs 'ro'" mount -o remount,rw M; has ro; mount -o remount,ro,noexec M; has noexec
        # As systemd unmounts what is in a mount.
        umount M/.world; umount M; waits eval '! pgrep -f -- "-- $PWD/M/.world\$"'
        echo "$PWD/S $PWD/M fuse.ibifs noauto,$OUT 0 0" > fstab; mount M; kind; findmnt -nro FSTYPE -R M | tail -n 1; has rw; umount -R M
        refused 'world=fallback needs' mount -t fuse.ibifs -o world=fallback S M
        mount -t fuse.ibifs -o ro,world=http://127.0.0.1:1,http://127.0.0.1:2,fallback,world-cache=$PWD/C S M; readlink M/8JMKD3MGP8W/34PGRBS; umount -R M"#,
    );
    assert_eq!(
        printed,
        "fuse.ibifs\nfuse.ibifs-world\n../.world/8JMKD3MGP8W/34PGRBS\nresolver http://127.0.0.1:1\nresolver http://127.0.0.1:2\n\
         fuse.ibifs\nfuse.ibifs-world\n../.world/8JMKD3MGP8W/34PGRBS"
    );
}

/// mount(8) finds the helper for both types, hands over what it does not keep to itself, and returns
/// when the tree is usable.
#[test]
fn mount_finds_the_helper_for_both_types() {
    let env = TestEnv::new();
    does(
        &env,
        "for type in fuse.ibifs ibifs; do
             mount -t $type S M -o lang=pt:en,list=all,nofail,_netdev,auto,user,relatime,x-a.b=c,noatime
             test $(ls -A M | grep -c mint) = 1; test $(kind) = fuse.ibifs
             has noatime; has noexec; has nosuid; has nodev; has allow_other
             mkdir M/.mint/$type; umount M
             mount -t $type S M; has rw; has nosuid; has nodev; no has noexec; umount M
         done
         test $(ibifs ls S | wc -l) = 3",
    );
    // -f mounts nothing, -v says what was done, -s passes over what there is not.
    does(
        &env,
        "mount -fn -t ibifs S M; no mountpoint -q M
         test \"$(mount -v -t ibifs S M)\" = \"ibifs: $PWD/S is mounted at $PWD/M\"; umount M
         mount -s -t ibifs S M -o lang=pt,en,nonsense,ro; has ro",
    );
}

/// What the helper refuses has a status of mount(8) and a line that says why.
#[test]
fn a_refusal_reaches_the_caller_of_mount() {
    let env = TestEnv::new();
    let missing = format!("'{}/T' does not exist", env.root().display());
    fails(&env, "mount -t fuse.ibifs $PWD/T M", 32, &missing);
    fails(
        &env,
        "mount -t fuse.ibifs S M -o lang=pt,lst=all",
        1,
        "ibifs: unknown mount option 'lst=all'; the options are lang=, list=,",
    );
    fails(
        &env,
        "mount.fuse.ibifs S M -N /proc/1/ns/mnt",
        1,
        "ibifs: a mount namespace is entered with 'nsenter --mount=/proc/1/ns/mnt mount ...'",
    );
    fails(
        &env,
        "mount.fuse.ibifs S M -o remount,ro",
        32,
        "ibifs: no store is mounted at 'M'",
    );
    fails(&env, "mount.ibifs S", 1, "<MOUNT_POINT>");
}

/// A line of fstab is mounted by its mount point and with all others, once; `remount,ro` makes it
/// read-only, with the other options as they were, and `remount,rw` writable again.
#[test]
fn a_line_of_fstab_is_mounted_and_remounted() {
    let env = TestEnv::new();
    does(
        &env,
        "for type in fuse.ibifs ibifs; do
             echo \"$PWD/S $PWD/M $type defaults,lang=pt:en,nofail,noexec,x-systemd.requires-mounts-for=$PWD 0 0\" > fstab
             mount M; mkdir M/.mint/$type-1; umount M
             mount -a; mount -a; test $(grep -c $PWD/M /proc/self/mountinfo) = 1
             mount -o remount,ro M; has ro; has nosuid; has nodev; has noexec
             refused 'Read-only file system' mkdir M/.mint/x
             mount -o remount,rw M; has rw; has nosuid; has nodev; has noexec; mkdir -p M/.mint/$type-2/doc
             exec 3> M/.mint/$type-2/doc/open
             refused 'open for writing' mount -o remount,ro M
             exec 3>&-; ibifs umount M
         done
         test $(ibifs ls S | wc -l) = 5
         mount -a -T fstab; mountpoint -q M; umount M; ibifs fsck S | grep -q ' 0 findings'",
    );
}

/// Where the helper is not installed, mount.fuse3(8) runs `ibifs` itself; the set-user-ID bits and
/// devices that it asks for on its own account are not granted.
#[test]
fn mount_fuse_works_without_the_helper() {
    let env = TestEnv::new();
    does(
        &env,
        "rm $(readlink -f /sbin)/mount.fuse.ibifs
         mount -t tmpfs none /usr/local/bin; cp bin/ibifs /usr/local/bin/
         mount -t fuse.ibifs S M -o lang=pt,nofail,_netdev,user,ro; has ro; has noexec; umount M
         mount -t fuse ibifs#$PWD/S M; has nosuid; has nodev; test $(kind) = fuse.ibifs; mkdir M/.mint/x",
    );
}

/// With `user` in fstab an ordinary user mounts and unmounts by mount(8), through fusermount3.
#[test]
fn an_ordinary_user_mounts_what_fstab_lets_him() {
    let env = TestEnv::new();
    does(
        &env,
        "echo \"$PWD/home/S $PWD/M fuse.ibifs noauto,user 0 0\" > fstab
         mkdir home; chmod 777 home; as_nobody ibifs init home/S --host u.example.org > /dev/null
         chown 65534:65534 M
         as_nobody mount M; has nosuid; has noexec; as_nobody mkdir M/.mint/x; no ls M
         no as_nobody mount -o remount,ro M
         as_nobody umount M; no mountpoint -q M
         as_nobody ibifs fsck home/S | grep -q '2 items, 0 findings'",
    );
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mnt").join(name)
}

/// systemd has no complaint of the units, nor of what it makes of the lines of fstab that we show; and
/// what these say of the order arrives.
#[test]
fn systemd_understands_the_units_and_fstab() {
    let env = TestEnv::new();
    let unit = std::fs::read_to_string(file("ibifs@.service")).expect("the unit");
    assert_eq!(unit.matches("/usr/bin/ibifs ").count(), 2);
    let program = env!("CARGO_BIN_EXE_ibifs");
    let unit = unit.replace("/usr/bin/ibifs ", &format!("{program} "));
    std::fs::write(env.root().join("ibifs@demo.service"), unit).expect("a unit");
    std::fs::copy(file("fstab.example"), env.root().join("fstab")).expect("an fstab");
    for name in ["ibifs-serve", "ibifs-backup", "ibifs-scrub", "ibifs-audit"] {
        let unit = std::fs::read_to_string(file(&format!("{name}@.service"))).expect("a unit");
        assert_eq!(unit.matches("/usr/bin/ibifs ").count(), 1, "{name}");
        let unit = unit.replace("/usr/bin/ibifs ", &format!("{program} "));
        std::fs::write(env.root().join(format!("{name}@demo.service")), unit).expect("a unit");
        let timer = file(&format!("{name}@.timer"));
        if timer.exists() {
            std::fs::copy(timer, env.root().join(format!("{name}@demo.timer"))).expect("a timer");
        }
    }
    // The user may be missing here, and systemd warns of that.
    let unit = std::fs::read_to_string(file("ibifs-resolver.service")).expect("a unit");
    assert_eq!(unit.matches("\nUser=ibifs\n").count(), 1);
    let unit = unit.replace("/usr/bin/ibifs ", &format!("{program} "));
    let unit = unit.replace("\nUser=ibifs\n", "\nUser=daemon\n");
    std::fs::write(env.root().join("ibifs-resolver.service"), unit).expect("a unit");
    let users = file("ibifs.sysusers");
    env.sh(&format!(
        "mkdir -p root/etc; systemd-sysusers --root=$PWD/root {}; grep -q '^ibifs:.*:/var/lib/ibifs-resolver:' root/etc/passwd",
        users.display()
    ));
    env.sh("for unit in ./ibifs*@demo.* ./ibifs-resolver.service; do
             systemd-analyze verify --man=no $unit 2> said; cat said; test ! -s said
         done");
    env.sh(
        "mkdir units; u=$PWD/units; cd /usr/lib/systemd/system-generators 2> /dev/null || cd /lib/systemd/system-generators
         SYSTEMD_FSTAB=$OLDPWD/fstab ./systemd-fstab-generator $u $u $u; cd $u
         for name in srv-archive.mount srv-copies.automount srv-copies.mount home-ana-archive.mount; do
             systemd-analyze verify --man=no ./$name 2> said; cat said; test ! -s said
         done
         grep -qx RequiresMountsFor=/var/lib/ibifs srv-archive.mount
         grep -qx Type=fuse.ibifs srv-archive.mount; grep -qx TimeoutSec=infinity srv-archive.mount
         test -e local-fs.target.wants/srv-archive.mount; no test -e local-fs.target.wants/home-ana-archive.mount",
    );
}

/// Started as the unit says, the daemon notifies systemd that it is ready when the tree answers, not
/// before, and that it stops when it does; where the mount fails it notifies nothing. What it logs is
/// marked for the journal, and signals change how much that is.
#[test]
fn the_service_notifies_and_logs_as_systemd_expects() {
    let env = TestEnv::new();
    env.sh("ibifs init S --host archive.example.org; mkdir M");
    let unit = std::fs::read_to_string(file("ibifs@.service")).expect("the unit");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let stop = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStop=-"));
    std::fs::write(env.root().join("notified.py"), NOTIFIED).expect("a program");
    let output = Command::new("python3")
        .arg("notified.py")
        .args([start.expect("a start"), stop.expect("a stop")])
        .args([env!("CARGO_BIN_EXE_ibifs"), "S", "M"])
        .current_dir(env.root())
        .output()
        .expect("python3 runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
}

/// Plays systemd: expands the command lines of the unit, listens, and looks at the mount.
const NOTIFIED: &str = r#"
import atexit, os, signal, socket, subprocess, sys, time
start, stop, program, store, mount_point = sys.argv[1:]
store, mount_point = os.path.abspath(store), os.path.abspath(mount_point)
def expanded(line, store):
    said = {'${STORE}': store, '${MOUNT_POINT}': mount_point, '${OPTIONS}': 'rw,log=info', '/usr/bin/ibifs': program}
    return [said.get(word, word) for word in line.split()]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind('notify'); listener.settimeout(20)
log = open('log', 'w+b'); stat = os.fstat(log.fileno())
env = dict(os.environ, NOTIFY_SOCKET=os.path.abspath('notify'), JOURNAL_STREAM=f'{stat.st_dev}:{stat.st_ino}')
def run(line, store=store):
    process = subprocess.Popen(expanded(line, store), env=env, stdout=subprocess.DEVNULL, stderr=log)
    atexit.register(process.kill)
    return process
def quiet():
    listener.setblocking(False)
    try: return not listener.recv(4096)
    except BlockingIOError: return True
    finally: listener.settimeout(20)
def logged(text):
    until = time.time() + 20
    while text not in open('log').read():
        assert time.time() < until, (text, open('log').read())
        time.sleep(0.005)

# Somebody has the store: nothing is printed while the daemon waits for it.
import fcntl
lock = open(store + '/lock', 'r+b'); fcntl.flock(lock, fcntl.LOCK_EX)
daemon = run(start); time.sleep(0.5)
assert quiet() and not os.path.ismount(mount_point) and daemon.poll() is None
lock.close()
printed = listener.recv(4096).decode()
assert printed == f'READY=1\nSTATUS={store} is mounted at {mount_point}\n', printed
assert os.listdir(mount_point) == ['example.org']
logged(f'<6>{store} is mounted at {mount_point}\n')
for number, said in [(signal.SIGUSR1, 'debug'), (signal.SIGUSR2, 'info'), (signal.SIGUSR2, 'warn'), (signal.SIGUSR2, 'error'),
                     (signal.SIGUSR1, 'warn'), (signal.SIGUSR1, 'info')]:
    log.truncate(0); log.seek(0)
    daemon.send_signal(number); logged(f'<4>logging {said} and graver\n')
    assert os.listdir(mount_point) == ['example.org']
assert quiet()
assert run(stop).wait(60) == 0
assert listener.recv(4096) == b'STOPPING=1\n'
assert daemon.wait(20) == 0 and not os.path.ismount(mount_point)

# By SIGTERM alone, as at a shutdown.
daemon = run(start); assert listener.recv(4096).startswith(b'READY=1\n')
daemon.terminate(); assert listener.recv(4096) == b'STOPPING=1\n' and daemon.wait(20) == 0

# Killed: the stop that systemd then runs takes the dead mount away.
daemon = run(start); assert listener.recv(4096).startswith(b'READY=1\n')
daemon.kill(); daemon.wait(20)
assert run(stop).wait(60) == 0 and os.listdir(mount_point) == []

# No store: nothing is printed but the reason.
log.truncate(0); log.seek(0)
assert run(start, store='/no/store').wait(20) == 3 and quiet()
logged("<3>ibifs: '/no/store' does not exist")
print('done')
"#;

/// A mount in the background goes on logging: to the system's log, or to the journal where systemd
/// has started it, which then keeps standard error open.
#[test]
fn a_mount_in_the_background_logs_to_the_system() {
    let env = TestEnv::with(Needs::RenameFlags);
    std::fs::write(env.root().join("syslog.py"), SYSLOG).expect("a program");
    does(
        &env,
        "python3 syslog.py & listener=$!; waits test -S /dev/log
         mount -t ibifs S M -o log=info 2> terminal; pid=$(daemon S)
         kill -USR2 $pid; waits grep -q . printed; umount M
         kill $listener; wait $listener || true
         grep -q 'INFO .* is mounted at ' terminal; test $(wc -l < terminal) = 1
         test \"$(cat printed)\" = \"<28>ibifs[$pid]: logging warn and graver\"",
    );
    does(
        &env,
        "touch journal; export JOURNAL_STREAM=$(stat -c %d:%i journal)
         mount -t ibifs S M 2>> journal; kill -USR1 $(daemon S)
         waits grep -q . journal; umount M
         test \"$(cat journal)\" = '<4>logging info and graver'",
    );
}

/// Reads the system's log, a line a message.
const SYSLOG: &str = "
import os, socket
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind('/dev/log'); os.chmod('/dev/log', 0o666); open('printed', 'w').close()
while True:
    with open('printed', 'ab') as printed: printed.write(log.recv(9999) + b'\\n')
";

/// A mount whose daemon is gone is replaced by the next mount of the store, and wherever a bind mount
/// has left it; what would lead into it is refused with the cause.
#[test]
fn a_dead_mount_never_stays() {
    let env = TestEnv::new();
    does(
        &env,
        "dead() { refused 'Transport endpoint is not connected' ls $1; }
         kill_daemon() { kill -9 $(daemon S); waits no ls M; }
         mkdir B T; mount -t ibifs S M; mkdir M/.mint/x; mount --bind M B; kill_daemon; dead M; dead B
         refused \"the daemon that had mounted '$PWD/M' is gone; unmount it with 'ibifs umount $PWD/M', or mount it again with 'ibifs mount $PWD/S $PWD/M'\" \
             ibifs mount S M/deeper
         refused \"the daemon that had mounted '$PWD/M' is gone\" ibifs mount M/store T
         refused 'the daemon of the mount is gone; mount the store again' ibifs mint M
         mount -t ibifs S M; test -d M/.mint; ls B; test -z \"$(ls B)\"; umount M
         # Somebody sits in it; mounted elsewhere, and by the mount point alone.
         mount -t ibifs S M; (cd M; exec sleep 60) & sitter=$!; kill_daemon; dead M
         mount -t ibifs S T; test -d T/.mint; test -z \"$(ls M)\"; umount T
         echo \"$PWD/S $PWD/M fuse.ibifs defaults 0 0\" > fstab
         mount M; kill_daemon; dead M; mount M; test -d M/.mint; umount M; kill $sitter
         # Below another mount it is in nobody's way.
         mount -t ibifs S M; kill_daemon; mount -t tmpfs none M; mount -t ibifs S M; test -d M/.mint
         umount M; umount M; dead M; mount -t ibifs S M; umount M; refused 'not mounted' umount M
         ibifs fsck S | grep -q '2 items, 0 findings'",
    );
}

/// An ordinary user's dead mount is replaced in the same way, by fusermount3.
#[test]
fn an_ordinary_users_dead_mount_never_stays() {
    let env = TestEnv::new();
    does(
        &env,
        "chown 65534:65534 M; as_nobody ibifs init T --host u.example.org > /dev/null
         as_nobody ibifs mount T M; kill -9 $(daemon T)
         # Until the daemon has ended, the kernel gives ECONNABORTED.
         waits eval \"(refused 'Transport endpoint is not connected' as_nobody ls M)\"
         as_nobody ibifs mount T M 2> said; grep -q 'a daemon that is gone' said; as_nobody test -d M/.mint
         as_nobody ibifs umount M",
    );
}

/// A store is not mounted in itself nor over itself, by whatever names the two places go: bind mounts
/// of the store or of a part of it, and a mount of the store that the store lies in.
#[test]
fn a_store_is_not_mounted_under_its_own_mount() {
    let env = TestEnv::new();
    does(
        &env,
        "nested() { refused 'are one inside the other; mount it elsewhere' ibifs mount \"$@\"; }
         mkdir all all/in B C; mv S all/in/; S=$PWD/all/in/S; mkdir $S/m $S/col/x.org
         nested $S $S; nested $S $S/m; nested $S all; nested $S all/in
         ln -s $S/m link; nested $S link
         mount --bind $S B; nested $S B/m; nested B $S/m; nested $S B; umount B
         mount --bind $S/col B; nested $S B/x.org; nested $S B; umount B
         mount --bind all B; nested $S B/in; nested B/in/S $S/m; umount B
         mount --bind $S/m $S/m; nested $S $S/m; umount $S/m
         # A store in an item of another, by the mount and by the disk.
         rmdir $S/m $S/col/x.org; ibifs init T --host t.example.org > /dev/null; ibifs mount $S M
         mkdir -p M/.mint/t/doc; cp -a T M/.mint/t/; item=$(realpath M/.mint/.t); disk=$S/col/$(rep $item)
         mkdir $disk/T/m
         nested $item/T $disk/T/m; nested $disk/T $item/T/m; nested $disk/T M/$(ibip $item)/T/m
         mount --bind $disk/T B; nested $item/T B/m; umount B; rmdir $disk/T/m
         # Elsewhere it may be.
         ibifs mount $item/T C; mkdir C/.mint/y; ibifs umount C; ibifs umount M
         mount --bind all B; ibifs mount B/in/S M; ibifs umount M; umount B
         ibifs fsck $S | grep -q '2 items, 0 findings'; rm -r T",
    );
}

/// allow_other is for whom fuse.conf allows it; a refusal says what to do.
#[test]
fn allow_other_names_its_remedy() {
    let env = TestEnv::new();
    does(
        &env,
        "chown 65534:65534 M; as_nobody ibifs init T --host u.example.org > /dev/null
         echo mount_max = 1000 > fuse.conf; mount --bind fuse.conf /etc/fuse.conf
         as_nobody ibifs mount -o allow_other T M 2> said && exit 1; test $? = 4
         test \"$(cat said)\" = \"ibifs: allow_other is refused to ordinary users; root can allow it with a line \
'user_allow_other' in /etc/fuse.conf, or mount without it\"
         echo user_allow_other >> fuse.conf
         as_nobody ibifs mount -o allow_other T M; ls M | grep -q example.org; has allow_other; as_nobody ibifs umount M
         # What else fusermount3 refuses is printed in its words, on one line.
         chown 0:0 M; chmod 755 M
         as_nobody ibifs mount T M 2> said && exit 1
         test \"$(cat said)\" = \"ibifs: the mount was refused: fusermount3: user has no write access to mountpoint $PWD/M\"",
    );
}

/// A mount with `ro` changes nothing; a store on a read-only disk is mounted so and not otherwise.
#[test]
fn a_read_only_mount_reads_all_and_writes_nothing() {
    let env = TestEnv::new();
    let disk = Disk::new(env.root(), "D", Format::Ext4, 32);
    let looks = r#"
        looks() {
            cat M/$rep/doc/f M/$(ibip M/$rep)/doc/f | uniq -c | grep -q '2 text'
            grep -q 'title>Rain' M/$rep:'(oai_dc)'; test $(state M/$rep) = Original
            for change in 'touch M/$rep/doc/g' 'mkdir M/.mint/y' 'rm M/$rep/doc/f' 'rm -r M/$rep' 'mkdir "M/$rep+(pt)"' \
                'setfattr -n user.ibi.metadata -v a.b/c/2001/01.01.01.01 M/$rep' 'touch M/$rep/doc/f'; do
                refused 'Read-only file system' eval "$change"
            done
            refused 'the mount is read-only' ibifs mint M
            test $(ibifs ls M | wc -l) = 2; ibifs show --store M $rep | grep -q Original
        }
        rep=$(cat rep)"#;
    env.sh(
        "mkdir M; ibifs init D/S --host archive.example.org; ibifs mount D/S M
         mint M x > rep; item=M/$(cat rep); echo text > $item/doc/f; echo 'title: Rain' > $item:; ibifs umount M",
    );
    env.sh(&format!(
        "{PRELUDE}{looks}; ibifs mount -o ro D/S M; looks; ibifs umount M"
    ));
    disk.remount("ro");
    env.sh(&format!(
        "{PRELUDE}{looks}
         sync; sum=$(md5sum < D.img)
         refused \"store '$PWD/D/S' is on a read-only filesystem; mount it with '-o ro'\" ibifs mount D/S M
         ibifs mount -o ro D/S M; looks; ibifs umount M; test $(ibifs ls D/S | wc -l) = 2
         test \"$sum\" = \"$(md5sum < D.img)\""
    ));
}

/// Why mount.ibifs(8) advises against NFS, whose servers rest on handles: a handle leads to its file, from any
/// process, while the kernel knows the file; it is stale once the kernel has forgotten it, until a user
/// comes by the file's name again; and after another mount.
#[test]
fn file_handles_hold_while_the_kernel_knows_the_file() {
    let env = TestEnv::new().with_a();
    std::fs::write(env.root().join("handles.py"), HANDLES).expect("a program");
    env.prints(
        &format!("{PRELUDE}
         forgets() {{ echo 2 > /proc/sys/vm/drop_caches; test $(python3 handles.py open A) = stale; }}
         f=A/$(mint A x)/doc/f; echo text > $f; ln -s $f f
         python3 handles.py take f; python3 handles.py open A
         waits forgets
         # Another test may have the kernel forget files at any time.
         knows() {{ cat f > /dev/null; test $(python3 handles.py open A) = text; }}; waits knows
         ibifs umount A; ibifs mount A.store A; python3 handles.py open A"),
        "text\nstale",
    );
}

/// The kernel forgets files by the thousand in one request when it needs memory; the daemon frees what it keeps of them
/// in no more time than it takes to go through them.
#[test]
fn files_that_the_kernel_forgets_are_freed_at_once() {
    let env = TestEnv::new().with_a();
    env.prints(
        &format!(
            "{PRELUDE}
         known() {{ getfattr --only-values -n user.ibi.held A | cut -d ' ' -f 2; }}
         cd A/$(mint A x)/doc; touch $(seq 4000); cd - > /dev/null
         # Another test may have the kernel forget files at any time.
         all() {{ find A -size +1M; [ $(known) -gt 4000 ]; }}; waits all
         daemon=$(sed -n 's/^pid //p' A.store/lock | cut -d ' ' -f 1)
         kill -STOP $daemon; echo 2 > /proc/sys/vm/drop_caches; kill -CONT $daemon
         few() {{ [ $(known) -lt 2000 ]; }}; for n in $(seq 100); do few && break; sleep 0.1; done; few"
        ),
        "",
    );
}

/// Takes a file's handle, or opens the file by it.
const HANDLES: &str = "
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
what, path = sys.argv[1:]
if what == 'take':
    handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136); mount = ctypes.c_int()
    assert libc.name_to_handle_at(-100, os.path.realpath(path).encode(), handle, ctypes.byref(mount), 0) == 0
    open('handle', 'wb').write(handle.raw)
else:
    handle = ctypes.create_string_buffer(open('handle', 'rb').read(), 136)
    found = libc.open_by_handle_at(os.open(path, os.O_RDONLY), handle, os.O_RDONLY)
    assert found >= 0 or ctypes.get_errno() == errno.ESTALE, ctypes.get_errno()
    print('stale' if found < 0 else os.read(found, 99).decode().strip())
";

/// Reading through a mount with `noatime` leaves times of access in the store as they are, with FUSE passthrough and
/// without, by read(2), mmap(2), a program that is run and a listing, for root and for others. Through another mount
/// reading sets them as it does in the store itself.
#[test]
fn noatime_leaves_times_of_access() {
    for passthrough in ["passthrough=yes", "passthrough=no"] {
        let env = TestEnv::new();
        env.sh("ibifs init S --host archive-a.example.org; mkdir A native
            echo text > native/f; cp $(type -P true) native/run; mkdir native/d; chmod -R a+rX . native");
        let reads = "
            reads() {
                touch -a -d 2001-01-01 $1/f $1/run $1/d; $2 cat $1/f > /dev/null; $2 $1/run; $2 ls $1/d > /dev/null
                stat -c %x $1/f $1/run $1/d | cut -c-4
                touch -a -d 2001-01-01 $1/f
                python3 -c 'import mmap, sys; f = open(sys.argv[1]); mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[0]' $1/f
                stat -c %x $1/f | cut -c-4
            }\n";
        let mounted = |option: &str| {
            env.sh(&format!(
                "ibifs mount S A -o {option},allow_other,exec,{passthrough}
                 cp -r native A/.mint/{option}; chmod -R a+rX A/.mint/{option}/
                 ln -s $PWD/A/$(rep A/.mint/{option}) {option}"
            ));
        };
        mounted("noatime");
        for by in ["", "setpriv --reuid=60001 --regid=60001 --clear-groups"] {
            let script = format!("{reads}reads noatime '{by}'");
            env.prints(&script, "2001\n2001\n2001\n2001");
        }
        env.sh("ibifs umount A");
        mounted("atime");
        // What the kernel has in its cache is not read again.
        let measure = env.sh(&format!("{reads}reads native '' | sed -n 1p"));
        env.prints(&format!("{reads}reads atime '' | sed -n 1p"), &measure);
        env.sh("ibifs umount A");
    }
}
