//! The daemon of root has lost what it needs to act as its callers, as in a container or a service that
//! gives it less: nothing is done with root's rights instead.

use crate::support::TestEnv;

/// `without CAPABILITIES CMD` runs a command that cannot get these back.
const WITHOUT: &str = r#"
without() { c=$1; shift; setpriv --bounding-set=$c --inh-caps=$c "$@"; }
as() { setpriv --reuid=$1 --regid=$1 --clear-groups "${@:2}"; }
"#;

/// It does not start, and says what is missing and what helps; for root alone it does.
#[test]
fn a_daemon_that_cannot_act_as_others_does_not_start() {
    let env = TestEnv::new();
    env.sh("ibifs init S --host archive-a.example.org; mkdir M");
    for missing in ["-setuid,-setgid", "-setuid", "-setgid"] {
        for options in ["", "-o allow_other=yes"] {
            env.sh(&format!(
                "{WITHOUT} exit=0; without {missing} ibifs mount $OPTIONS S M 2> complaint || exit=$?; test $exit = 4
                 grep -q 'CAP_SETUID or CAP_SETGID is missing; add both' complaint; no mountpoint -q M"
            ).replace("$OPTIONS", options));
        }
        env.sh(&format!(
            "{WITHOUT} without {missing} ibifs mount -o allow_other=no S M
             mkdir -p M/.mint/x/doc; no as 1001 ls M; echo text > M/.mint/x/doc/f; cat M/.mint/x/doc/f
             # Root of another group is somebody else: what cannot be done as that user is not done as root.
             no setpriv --regid=1001 --clear-groups touch M/.mint/x/doc/g; test ! -e M/.mint/x/doc/g
             ibifs umount M"
        ));
    }
    env.sh(&format!(
        "{WITHOUT} without -sys_time ibifs mount S M; chmod 1777 M; as 1001 mkdir -p M/.mint/y/doc
         as 1001 touch M/.mint/y/doc/f; stat -c %u M/$(labelled M y as 1001)/doc/f | grep -qx 1001"
    ));
}

/// A file that holds secrets is for its owner alone; otherwise it is refused, and the message says what helps.
#[test]
fn what_holds_secrets_is_closed() {
    let env = TestEnv::new().with_index_file();
    env.sh(
        "umask 022; ibifs init S --host archive-a.example.org; stat -c %a S | grep -qx 700
         mkdir -m 777 made; ! ibifs init made --host archive-b.example.org 2> printed; grep -q 'chmod o-w' printed
         chmod 775 made; ibifs init made --host archive-b.example.org 2> printed; grep -q 'chmod 700' printed
         ibifs fsck S; chmod 701 S; exit=0; ibifs fsck S > printed || exit=$?; test $exit = 1
         grep -q '^store-open: ' printed; grep -q 'chmod o-x' printed; chmod 750 S; ibifs fsck S",
    );
    env.sh(
        "umask 0; item=$(ibifs mint S | head -n 1)
         ibifs resolver register --db r.db $item > key; stat -c %a r.db* | sort -u | grep -qx 600
         chmod 640 r.db; exit=0; ibifs resolver register --db r.db $item 2> printed || exit=$?; test $exit = 4
         grep -q \"chmod 600 r.db\" printed; chmod 600 r.db",
    );
    for command in [
        "ibifs serve S --listen 127.0.0.1:0 --transfer-token-file secret",
        "ibifs serve S --listen 127.0.0.1:0 --resolver http://127.0.0.1:1 --registration-key-file secret",
        "ibifs copy --store S --token-file secret $(ibifs mint S | head -n 1) http://127.0.0.1:1/",
        "ibifs resolver register --db r.db --key-file secret $(ibifs mint S | head -n 1)",
    ] {
        for mode in ["644", "640", "604", "602"] {
            env.sh(&format!(
                "head -c 32 /dev/zero | od -An -v -tx1 | tr -d ' \\n' > secret; chmod {mode} secret
                 exit=0; timeout 10 {command} 2> printed || exit=$?; test $exit = 4; grep -q 'chmod 600 secret' printed"
            ));
        }
    }
}
