//! The shares of strangers in a service or in a mount: none of them takes all, and others get an answer soon.

use crate::http::served::{Fixture, Served};
use crate::support::TestEnv;

/// `from ADDRESS ...`: curl from an address of this machine. `takes COMMAND...`: `soon` if it takes less than ten seconds, on
/// a machine that may be busy.
const TOOLS: &str = r#"
from() { local address=$1; shift; curl -sS -o /dev/null -w '%{http_code}\n' --interface $address --max-time 20 --globoff "$@"; }
takes() { local begun=$(date +%s%N) took; "$@"; took=$((($(date +%s%N) - begun) / 1000000)); [ $took -lt 10000 ] && echo soon || echo $took ms; }
stop() { ends $@; wait $@ 2> /dev/null || true; }
"#;

/// A client that opens more slow downloads of zip files, or of bags, than are sent at a time has 16 of 64 places: others have
/// the rest.
#[test]
fn zip_files_are_shared_between_clients() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs mint A | head -n 1 > one; mkdir -p A/$(< one)/doc; truncate -s 300M A/$(< one)/doc/long; ibifs mint A | head -n 1 > other; echo x > A/$(< other)/doc/x");
    let served = Served::start(&env, "A.store");
    Fixture::new(env, served, TOOLS).prints(
        r#"
        pids=; trap 'stop $pids' EXIT
        slow() { curl -s --interface 127.0.0.2 --limit-rate 1k --max-time 60 "$U/archive.cgi/$(< one)$1" -o /dev/null 2> /dev/null & pids="$pids $!"; }
        is_full() { test $(from 127.0.0.2 "$U/archive.cgi/$(< other)") = 503; }
        # As many as there are places, and more, since the question whether all are taken takes one itself.
        for by in '' '?bag'; do
            for i in $(seq $([ $by ] && echo 20 || echo 70)); do slow "$by"; done; waits is_full
            for other in 127.0.0.3 127.0.0.1; do for want in '' '?bag'; do takes from $other "$U/archive.cgi/$(< other)$want"; done; done
            stop $pids; pids=
            is_free() { test $(from 127.0.0.2 "$U/archive.cgi/$(< other)?bag") = 200; }; waits is_free
        done
        # A browser takes six at a time.
        for i in 1 2 3 4 5 6; do from 127.0.0.2 "$U/archive.cgi/$(< other)" & done | sort | uniq -c | tr -s ' '"#,
        &format!("{} 6 200", "200\nsoon\n".repeat(8)),
    );
}

/// A client that asks for the site map with 64 connections does not keep the pages of another one waiting, nor does one that
/// searches with 64 connections for what takes long; all its own requests are answered.
#[test]
fn searches_are_shared_between_clients() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        ibifs umount A
        python3 - <<'END'
import os
for i in range(3000):
    at = "A.store/col/x.org/y/2020/%02d.%02d.%02d.%02d" % (1 + i // 40320, 1 + i // 1440 % 28, i // 60 % 24, i % 60)
    os.makedirs(at)
    open(at + "/.ibi", "w").write("ibi {rep %s}\n" % at[12:])
    open(at + "/.ibi.metadata", "w").write("title: a%d b%d c%d sea\n" % (i, i, i % 97))
END
        ibifs reindex A.store > /dev/null"#);
    let served = Served::start(&env, "A.store");
    Fixture::new(env, served, TOOLS).prints(
        r#"
        is_ready() { test $(from 127.0.0.1 "$U/search?q=sea") = 200; }
        # Each search reads more of them; a busy machine takes some minutes.
        for turn in 1 2 3 4; do ! (waits is_ready) || break; done; is_ready
        heavy=$(for i in 1 2 3 4 5 6 7 8 9; do for l in a b c; do printf '%s%s*+' $l $i; done; done | sed 's/+$//')
        trap 'stop $pids' EXIT
        for i in $(seq 200); do printf 'url = "%s/search?q=sea&page=%d"\n-o /dev/null\nurl = "%s/search?q=%s"\n-o /dev/null\n' $U $i $U "$heavy"; done > urls
        curl -s -Z --parallel-max 64 --interface 127.0.0.2 --globoff -K urls -w '%{http_code}\n' > codes & pids=$!
        for i in 1 2 3; do takes from 127.0.0.3 "$U/search?q=sea"; takes from 127.0.0.3 $U/; done
        stop $pids; sort -u codes | grep -v 200 || true
        for i in $(seq 2000); do printf 'url = "%s/sitemap-0.xml"\n-o /dev/null\n' $U; done > urls
        curl -s -Z --parallel-max 64 --interface 127.0.0.2 -K urls -w '%{http_code}\n' > codes & pids=$!
        are_answered() { test -s codes; }; waits are_answered
        for i in 1 2; do takes from 127.0.0.3 $U/; done
        stop $pids; sort -u codes | grep -v 200 || true"#,
        "200\nsoon\n".repeat(8).trim_end(),
    );
}

/// An Archive that sends a byte now and then, read by one user in many threads, keeps neither the reads of others waiting nor
/// those from other Archives; and these reads end.
#[test]
fn slow_archives_are_shared_between_users() {
    let env = TestEnv::new().with_a().with_b();
    env.sh(
        r#"chmod 755 .; ibifs mint A | head -n 1 > one; for i in $(seq 24); do head -c 200000 /dev/zero | tr '\0' $((i % 10)) > A/$(< one)/doc/f$i; done
        for i in 1 2; do ibifs mint B | head -n 1 > other$i; head -c 200000 /dev/urandom > B/$(< other$i)/doc/x; done; chmod 755 A/$(< one) B/$(< other1) B/$(< other2); mkdir M"#,
    );
    let served = Served::start(&env, "A.store --url http://archive-a.example.org");
    let other = Served::start(&env, "B.store --url http://archive-b.example.net");
    env.sh(&format!("echo A={} B={} > urls", served.url, other.url));
    let fixture = Fixture::new(env, served, TOOLS);
    fixture.prints(
        r#"
        . ./urls
        cat > slow.py <<'END'
import http.server, sys, time, urllib.request, urllib.error
class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        try: answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1] + self.path, headers=headers))
        except urllib.error.HTTPError as error: answer = error
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"): self.send_header(name, value)
        self.send_header("Content-Length", str(len(body))); self.end_headers()
        is_slow = "/doc/f" in self.path and "digests=" not in self.path
        if is_slow: open("asked-" + self.path.rsplit("/", 1)[1], "w").close()
        try:
            while is_slow and body: self.wfile.write(body[:1]); self.wfile.flush(); body = body[1:]; time.sleep(2)
            self.wfile.write(body)
        except OSError: pass
    def log_message(self, *said): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow); server.daemon_threads = True
open("port", "w").write(str(server.server_port)); server.serve_forever()
END
        python3 slow.py $A & slow=$!; pids=; trap 'stop $slow $pids; ibifs umount M' EXIT; waits test -s port
        ibifs world M --archive http://127.0.0.1:$(< port) --archive $B --cache C
        stranger() { setpriv --reuid=1001 --regid=1001 --clear-groups -- "$@"; }
        for i in 1 2; do stat M/$(< other$i)/doc/x > /dev/null; done; stat M/$(< one)/doc/f1 > /dev/null
        for i in $(seq 24); do stranger timeout 60 cat M/$(< one)/doc/f$i > /dev/null 2> said$i & pids="$pids $!"; done
        are_reading() { test $(ls asked-* | wc -l) -ge 8; }; waits are_reading
        sum() { "$@" | cmp - B/$(< other$other)/doc/x && echo same; }
        other=1; takes sum cat M/$(< other1)/doc/x; other=2; takes sum stranger cat M/$(< other2)/doc/x
        has_failed() { grep -q 'Input/output error' said*; }; waits has_failed; has_failed && echo ended"#,
        "same\nsoon\nsame\nsoon\nended",
    );
    drop(other);
}
