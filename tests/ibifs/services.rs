//! The report of `ibifs status` on the services that run on a store.

use crate::support::{Needs, TestEnv};

/// `start FILE OPTION ...` starts a service on `A.store`, whose first line comes to the file, and prints its process. The
/// service of a process ends with it.
const START: &str = r#"
start() {
    rm -f "$1"; ibifs serve --listen 127.0.0.1:0 --json "${@:2}" A.store > "$1" 2> "$1.said" & echo $! > "$1.pid"
    until grep -q . "$1"; do kill -0 $(< "$1.pid"); sleep 0.05; done
}
services() { ibifs status A.store --json | jq -c '.[0].services'; }
stop() { kill -"$1" $(< "$2.pid"); while kill -0 $(< "$2.pid") 2> /dev/null; do sleep 0.05; done; }
"#;

fn environment(env: TestEnv) -> TestEnv {
    env.sh("ibifs init A.store --host archive-a.example.org");
    env
}

#[test]
fn a_service_is_shown_as_long_as_its_process_lives() {
    let env = environment(TestEnv::with(Needs::LocalLocks));
    env.sh(&format!(
        r#"{START}
        test "$(services)" = '[]'; ibifs status A.store | no grep ^serve
        start one; start two --url https://archive.example.org
        trap 'ends $(< two.pid)' EXIT
        services > found
        jq -e --arg host $(uname -n) --argjson pid $(< one.pid) --arg address $(jq -r .url one) '
            length == 2 and .[0].host == $host and .[0].pid == $pid and .[0].user == "nobody" and .[0].running
            and .[0].address == $address and .[1].url == "https://archive.example.org"' found
        test $(($(date +%s) - $(date +%s -d $(jq -r '.[0].since' found)))) -lt 60
        ibifs status A.store | grep "^serve    http://127.*, process $(< one.pid) of nobody on $(uname -n) since 20"
        # Not by the file alone, of which nothing is removed.
        stop KILL one; ls A.store/serving.1; services | jq -e --argjson pid $(< two.pid) 'length == 1 and .[0].pid == $pid'
        start one; services | jq -e length==2; test $(ls A.store/serving.* | wc -l) = 2
        stop TERM one; stop TERM two; test "$(services)" = '[]'
        ibifs backup A.store copy; no ls copy/serving.1; ibifs fsck A.store"#
    ));
}

#[test]
fn a_user_sees_the_services_of_a_store_that_they_may_read() {
    let env = environment(TestEnv::with(Needs::LocalLocks));
    env.sh(&format!(
        r#"{START}
        chmod 755 . A.store; start one; trap 'ends $(< one.pid)' EXIT; store=$PWD/A.store
        as() {{ setpriv --reuid 1234 --regid 1234 --clear-groups "$@"; }}
        as ibifs status $store --json | jq -e --argjson pid $(< one.pid) '.[0].services[0].pid == $pid'
        # Their lock says nothing.
        stop KILL one; setpriv --reuid 1234 --regid 1234 --clear-groups flock --no-fork --shared $store/serving.1 sleep 100 & sitter=$!
        waits no as flock --exclusive --nonblock $store/serving.1 true; test "$(services)" = '[]'; kill $sitter; wait
        chmod 700 $store; no as ibifs status $store; chmod 711 $store
        as ibifs status $store --json | jq -e '.[0].services == null'
        chmod 711 $store; as ibifs status $store > said; grep '^serve    not known' said; grep '^used by  not known' said"#
    ));
}

/// Of another host the lock says nothing where it may be of one host alone.
#[test]
fn a_service_of_another_host_may_run() {
    let env = environment(TestEnv::new().on_bindfs());
    env.sh(&format!(
        r#"{START}
        start one; stop KILL one; test "$(services)" = '[]'
        sed -i 's/^host .*/host elsewhere/; s/^machine .*/machine other/' A.store/serving.*
        services | jq -e 'length == 1 and .[0].host == "elsewhere" and .[0].running == null'
        ibifs status A.store | grep 'on elsewhere since .*may have ended'"#
    ));
    let local = environment(TestEnv::with(Needs::LocalLocks));
    local.sh(&format!(
        r#"{START}
        start one; stop KILL one; sed -i 's/^machine .*/machine other/' A.store/serving.1; test "$(services)" = '[]'"#
    ));
}
