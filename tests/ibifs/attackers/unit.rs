//! The daemon has of root's powers what its unit leaves it, and needs no more.

use std::path::Path;

use crate::support::TestEnv;

/// `unit CMD` runs a command as the unit of a mounted store does.
fn words() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (script, unit) = ("tests/ibifs/support/unit.py", "mnt/ibifs@.service");
    format!(
        "unit() {{ python3 {} {} \"$@\"; }}
         as() {{ setpriv --reuid=$1 --regid=$1 --clear-groups \"${{@:2}}\"; }}
         is() {{ grep -q \"^$2:.$3\\$\" /proc/$1/status; }}",
        root.join(script).display(),
        root.join(unit).display()
    )
}

fn script(env: &TestEnv, script: &str) {
    env.sh(&format!("{}\n{script}", words()));
}

/// Users and root work in a mount, and the daemon does its own work, with what the unit leaves.
#[test]
fn a_mount_works_with_what_its_unit_leaves() {
    let env = TestEnv::new();
    script(
        &env,
        "ibifs init S --host archive-a.example.org; mkdir M; unit ibifs mount S M; D=$(daemon S)
         is $D NoNewPrivs 1; is $D Seccomp 2; no is $D CapBnd $(sed -n 's/^CapBnd:.//p' /proc/1/status)
         chmod 1777 M; as 1001 mkdir -p M/.mint/x/doc; R=$PWD/M/$(labelled M x as 1001); cd $R/doc
         as 1001 sh -ec 'echo text > f; ln f g; ln -s f l; mkfifo p; mkdir d; chmod 2755 d; setfacl -m u:1002:r f; setfattr -n user.a -v b f
                         dd if=/dev/zero of=big bs=1M count=2 status=none; fallocate -l 1M space; cp --sparse=always big sparse; mv g h; rm -r d'
         stat -c %u f | grep -qx 1001; as 1002 cat f; chmod 600 f; no as 1003 cat f
         echo root > r; chown 1002:1002 r; as 1002 sh -ec 'echo more >> r'; chmod 4755 r; mknod null c 1 3; setcap cap_net_raw+ep r
         chattr +i r; no rm -f r; chattr -i r; truncate -s 1T huge; flock f true; rm huge null
         cd - > /dev/null; mkdir M/.mint/z; ln -sfn $(realpath M/.mint/.z) \"$R+(pt)\"; rm \"$R+(pt)\"; ibifs mint S; ibifs status S | grep -q passthrough || true
         as 1001 rm -r $R/doc/big; rm -r $R; unit ibifs umount M; ibifs fsck S",
    );
    script(
        &env,
        "lose_index S; unit ibifs mount S M; mkdir M/.mint/y; kill -9 $(daemon S); unit ibifs umount M; unit ibifs mount S M; unit ibifs umount M; ibifs fsck S",
    );
}

/// A service without tokens is root's no more as soon as it listens, and gives what everybody may read.
#[test]
fn a_service_gives_root_up() {
    let env = TestEnv::new();
    env.sh("ibifs init S --host archive-a.example.org; ibifs init T --host archive-b.example.org; chown -R 1001:1001 T");
    for (store, mounted) in [("S", true), ("S", false), ("T", false)] {
        script(
            &env,
            &format!(
                "! {mounted} || {{ mkdir -p M; ibifs mount {store} M; }}
                 one=$(ibifs mint {store} | head -n 1); two=$(ibifs mint {store} | head -n 1); three=$(ibifs mint {store} | head -n 1)
                 col={store}/col; echo public > $col/$one/doc/f; echo secret > $col/$one/doc/g; chmod 600 $col/$one/doc/g
                 echo secret > $col/$two/doc/f; chmod 700 $col/$two
                 rm -f listening; ibifs serve {store} --listen 127.0.0.1:0 > listening & S=$!
                 trap 'kill $S' EXIT
                 until grep -q http listening; do kill -0 $S; sleep 0.05; done
                 url=$(sed -n 's,.*\\(http://127[^ ]*\\)/.*,\\1,p' listening)
                 cat /proc/$S/task/*/status | tr -s '\\t ' ' ' | grep -E '^(Uid|Gid|Groups|NoNewPrivs|Cap(Inh|Prm|Eff|Amb)):' | sort -u > held
                 diff held - <<'END'
CapAmb: 0000000000000000
CapEff: 0000000000000000
CapInh: 0000000000000000
CapPrm: 0000000000000000
Gid: 65534 65534 65534 65534
Groups: 
NoNewPrivs: 1
Uid: 65534 65534 65534 65534
END
                 curl -sf $url/col/$one/doc/f | contains -x public; no curl -sf $url/col/$one/doc/g; no curl -sf $url/col/$two/doc/f
                 curl -sf \"$url/oai?verb=ListIdentifiers&metadataPrefix=oai_dc\" > list; grep -q $one list
                 four=$(ibifs mint {store} | head -n 1); echo later > $col/$four/doc/f; curl -sf $url/col/$four/doc/f | contains -x later
                 curl -sf $url/$one > page; test -s page
                 curl -sf \"$url/$one?ibiurl.verblist=GetFileList\" > files; grep -q doc/f files
                 ! {mounted} || {{ ibifs umount M; }}
                 five=$(ibifs mint {store} | head -n 1); echo last > $col/$five/doc/f; curl -sf $url/col/$five/doc/f | contains -x last
                 kill $S; trap - EXIT; wait $S || true; ibifs fsck {store}"
            ),
        );
    }
}

/// The units of the HTTP service, the backup, the scrub, the audit and the cosignatures start what they say, with what they leave.
#[test]
fn a_store_is_served_backed_up_and_checked_by_its_units() {
    let env = TestEnv::new();
    let mnt = Path::new(env!("CARGO_MANIFEST_DIR")).join("mnt");
    let command = |name: &str| {
        let unit = std::fs::read_to_string(mnt.join(name)).expect("a unit");
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/"));
        line.expect("a start").to_owned()
    };
    let (serve, backup) = (
        command("ibifs-serve@.service"),
        command("ibifs-backup@.service"),
    );
    let scrub = command("ibifs-scrub@.service");
    let cosign = command("ibifs-cosign@.service");
    let audit = command("ibifs-audit@.service");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ibifs/support/unit.py");
    let (script, unit) = (script.display(), mnt.join("ibifs-serve@.service"));
    let unit = unit.display();
    env.sh(&format!(
        "ibifs init S --host archive-a.example.org; chown -R 1001:1001 S
         one=$(ibifs mint S | head -n 1); echo public > S/col/$one/doc/f
         STORE=S BACKUP=B BACKUP_OPTIONS= SERVE_OPTIONS='--listen 127.0.0.1:0' SCRUB_OPTIONS='--rate 50M'
         python3 {script} {unit} {serve} > listening & S=$!
         trap 'kill $S' EXIT
         until grep -q http listening; do kill -0 $S; sleep 0.05; done
         url=$(sed -n 's,.*\\(http://127[^ ]*\\)/.*,\\1,p' listening)
         grep -q '^Uid:.65534' /proc/$S/status; curl -sf $url/col/$one/doc/f | contains -x public
         kill $S; trap - EXIT; wait $S || true
         {backup}; {backup}; ibifs fsck B
         {{ {cosign} || true; }} 2>&1 | grep -q 'names no witness'
         {scrub}; {scrub} | grep -qx '2 items, 1 file, 7 bytes'
         AUDIT_WITH=B AUDIT_OPTIONS='--minutes 60'; {audit} | grep -qx '2 items compared, 1 file, .*: 0 files mended, 0 left to see to'
         echo damaged > S/col/$one/doc/f; touch -d @0 S/col/$one/doc/f; {scrub}; test -s B/col/$one/doc/f"
    ));
}

/// The unit of the resolver starts it as an ordinary user without capabilities, and it resolves, registers and reports.
#[test]
fn a_resolver_works_with_what_its_unit_leaves() {
    let env = TestEnv::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (script, unit) = (
        root.join("tests/ibifs/support/unit.py"),
        root.join("mnt/ibifs-resolver.service"),
    );
    let text = std::fs::read_to_string(&unit).expect("the unit");
    assert!(
        text.contains("\nCapabilityBoundingSet=\n") && text.contains("\nNoNewPrivileges=yes\n")
    );
    let start = text
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/"));
    env.sh(&format!(
        "chmod 755 .; mkdir state log; chown 1001:1001 state log; chmod 750 state log
         export DB=$PWD/state/resolver.db RESOLVER_OPTIONS='--listen 127.0.0.1:0 --metrics 127.0.0.1:0 --access-log log/access'
         as() {{ exec setpriv --reuid=1001 --regid=1001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \"$@\"; }}
         IBIFS_UNIT_RESTRICTED={unit} as /usr/bin/python3 {script} {unit} {start} > listening & R=$!
         trap 'kill $R' EXIT
         until grep -q metrics listening; do kill -0 $R; sleep 0.05; done
         grep -q '^Uid:.1001' /proc/$R/status; grep -q '^CapEff:.0000000000000000' /proc/$R/status; grep -q '^Seccomp:.2' /proc/$R/status
         url=$(sed -n 's,^resolving.* \\(http://127[^ ]*\\)/.*,\\1,p' listening); metrics=$(sed -n 's,^metrics at ,,p' listening)
         curl -sf $url/ > page; grep -q '<html' page; (as ibifs resolver register --db $DB 8JMKD3MGP8W/34PGRBS) > key
         for i in $(seq 100); do curl -sf $metrics > found; grep -q '^ibifs_resolver_archives{{state=\"absent\"}} 1' found && break; sleep .1; done
         grep -q '^ibifs_resolver_archives{{state=\"absent\"}} 1' found
         kill $R; trap - EXIT; wait $R; grep -q 'GET / ' log/access",
        unit = unit.display(),
        script = script.display(),
        start = start.expect("a start"),
    ));
}
