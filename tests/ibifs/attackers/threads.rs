//! Callers of any user, group, umask and capability in turn: a worker is itself again after each of them, so that
//! no request has the rights of the one before.

use crate::support::TestEnv;

/// `without CAPABILITIES CMD` runs a command that cannot get these back, where there are any.
const SCRIPT: &str = r#"
without() { local c=$1; shift; if [[ $c ]]; then setpriv --bounding-set=$c --inh-caps=$c "$@"; else "$@"; fi; }
# The capabilities, user, group and groups of all threads of the daemon, each once.
threads() { cat /proc/$(daemon A.store)/task/*/status | grep -E '^(CapEff|CapPrm|Uid|Gid|Groups)' | sort -u; }
# All of a worker's turns end, and with them what it has taken.
settled() { for i in $(seq 300); do [[ $(threads) = "$1" ]] && return; ls A > /dev/null; sleep 0.02; done; diff <(echo "$1") <(threads); }
"#;

/// Ten callers at once of each kind make, change, link and remove; then the daemon does all that it did before.
#[test]
fn a_worker_is_itself_again_after_each_caller() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir A");
    for missing in ["", "-sys_resource", "-sys_nice", "-sys_resource,-sys_nice"] {
        env.sh(&format!(
            r#"{SCRIPT}
            umask 022; without '{missing}' ibifs mount A.store A; chmod 1777 A; before=$(threads)
            item=A/$(mint A x{missing}); chmod 777 $item $item/doc; cd $item/doc
            turn() {{ echo x > $1; chmod 600 $1; ln $1 $1.l; mkfifo $1.p; rm $1.l; mv $1 $1.m; }}
            export -f turn
            for i in $(seq 10); do
                setpriv --regid=1001 --clear-groups bash -ec "umask 077; turn zero$i" &
                setpriv --reuid=1001 --regid=0 --clear-groups bash -ec "umask 000; turn other$i" &
                setpriv --reuid=1001 --regid=1001 --groups=1002,1003 --inh-caps=+fowner,+chown --ambient-caps=+fowner,+chown bash -ec "turn able$i" &
                bash -ec "umask 027; turn root$i" &
            done
            failed=0; for job in $(jobs -p); do wait $job || failed=$((failed + 1)); done; test $failed = 0
            cd - > /dev/null; settled "$before"
            # What needs each capability over files is done for root by every worker.
            for i in $(seq 40); do
                touch $item/doc/r$i; chown 1002 $item/doc/r$i; chmod 600 $item/doc/r$i; cat $item/doc/r$i
                mknod $item/doc/n$i c 1 3; test $(stat -c %a $item/doc/n$i) = 644
                mkdir -p $item/doc/d$i/e; rm -r $item/doc/d$i
            done
            rm -r $item/doc/*; setpriv --reuid=1001 --regid=1001 --clear-groups mkdir -p A/.mint/y/doc
            ibifs umount A"#
        ));
    }
}

/// A name that the daemon makes has its mode from the umask of its caller, and nothing of the caller before.
#[test]
fn a_umask_counts_for_its_own_request() {
    let env = TestEnv::new().with_a();
    env.sh(
        "umask 022; chmod 1777 A; item=A/$(mint A x); chmod 777 $item/doc
         for turn in $(seq 12); do
             for mask in 077 000 027 022; do
                 (umask $mask; echo x > $item/doc/f-$mask-$turn; mkdir $item/doc/d-$mask-$turn; mkdir A/.mint/m-$mask-$turn) &
             done
         done; wait
         for mask in 077 000 027 022; do
             test \"$(stat -c %a $item/doc/f-$mask-* | sort -u)\" = $(printf %o $((0666 & ~0$mask)))
             test \"$(stat -c %a $item/doc/d-$mask-* | sort -u)\" = $(printf %o $((0777 & ~0$mask)))
             for label in A/.mint/m-$mask-*; do stat -L -c %a A/$(rep $label); done | sort -u > modes
             test $(cat modes) = $(printf %o $((0777 & ~0$mask)))
         done
         # Sidecars are for all readers, with any umask.
         stat -c %a A/.mint/m-*/.ibi | sort -u > sidecars; test $(wc -l < sidecars) = 1",
    );
}
