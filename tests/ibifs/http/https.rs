//! Services behind nginx with TLS, services with TLS of their own, and what reaches them: with the certificates of an
//! authority of the test.

use std::net::TcpListener;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::served::Served;
use crate::support::TestEnv;

/// Makes the authority `ca.pem`, and by it the certificate `NAME.pem` with the key `NAME.key` of this machine.
pub const AUTHORITY: &str = r#"
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=Authority of a test" -keyout "$1.key" -out "$1.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign 2> openssl-said
}
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2> openssl-said
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > "$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.pem" 2> openssl-said
}
"#;

fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh(&format!(
        r#"{AUTHORITY}
        authority ca; authority other; certificate nginx; certificate own; certificate next
        ibifs init A --host archive-a.example.org > /dev/null
        ibifs mint A | head -n 1 > one
        echo text > "A/col/$(< one)/doc/a b.txt"
        sed -n 's/^ibi.archiveservice {{rep \([^ ]*\) .*/\1/p' A/archive.ibi > service
        "#
    ));
    env
}

/// A running nginx. It ends when it is dropped.
struct Nginx {
    child: Child,
    /// The port at which it speaks TLS and HTTP/2.
    tls: u16,
    /// The port at which it redirects to the other one.
    plain: u16,
}

impl Nginx {
    /// Runs nginx with these directives of its server with TLS.
    fn start(env: &TestEnv, directives: &str) -> Nginx {
        let found = (0..10).find_map(|_| Nginx::at(env, free_ports(), directives));
        found.unwrap_or_else(|| panic!("nginx does not start: {}", env.sh("cat nginx-errors")))
    }

    /// The same at these ports: for TLS, and without. None if another program has taken one meanwhile.
    fn at(env: &TestEnv, [tls, plain]: [u16; 2], directives: &str) -> Option<Nginx> {
        let text = format!(
            r#"
            pid nginx.pid; error_log nginx-errors; worker_processes 1; daemon off; user root;
            events {{ worker_connections 64; }}
            http {{
                access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
                server {{ listen 127.0.0.1:{plain}; return 301 https://$host:{tls}$request_uri; }}
                server {{
                    listen 127.0.0.1:{tls} ssl http2;
                    ssl_certificate nginx.pem; ssl_certificate_key nginx.key; client_max_body_size 0;
                    {directives}
                }}
            }}"#
        );
        std::fs::write(env.root().join("nginx.conf"), text).expect("written");
        let child = env
            .command("exec nginx -p \"$PWD\" -c nginx.conf")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx runs");
        let mut nginx = Nginx { child, tls, plain };
        let wait = format!(
            "for i in $(seq 200); do curl -s -o /dev/null http://127.0.0.1:{plain}/ && break; kill -0 {} || break; sleep 0.05; done",
            nginx.child.id()
        );
        env.run(&wait);
        let is_running = nginx.child.try_wait().expect("asked").is_none();
        is_running.then_some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Two ports that are free now.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

/// An Archive below `/x` of nginx, served with these options.
fn behind_nginx(env: &TestEnv, store: &str, options: &str) -> (Nginx, Served) {
    for _ in 0..10 {
        let ports = free_ports();
        let url = format!("https://localhost:{}/x", ports[0]);
        let served = Served::start(env, &format!("{store} --url {url} {options}"));
        let to = format!(
            "location /x/ {{ proxy_pass {}; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}",
            served.url
        );
        if let Some(nginx) = Nginx::at(env, ports, &to) {
            return (nginx, served);
        }
    }
    panic!("nginx does not start: {}", env.sh("cat nginx-errors"));
}

#[test]
fn an_archive_behind_nginx() {
    let env = environment();
    let (nginx, _served) = behind_nginx(&env, "A", "");
    let url = format!("https://localhost:{}/x", nginx.tls);
    let plain = format!("http://localhost:{}/x", nginx.plain);
    env.prints(
        &format!(
            r#"
            U={url}; one=$(< one)
            get() {{ curl -sS --fail --cacert ca.pem --http2 "$@"; }}
            get -o page -w '%{{http_version}} %{{http_code}} %{{content_type}}\n' $U/
            grep -o ' href="/[^"]*' page | grep -cv '="/x/' || true
            get "$U/oai?verb=Identify" | grep -o '<baseURL>.*</baseURL>' | sed "s;$U;URL;"
            get -o /dev/null -w '%{{http_code}} %{{redirect_url}}\n' $U/$one | sed "s;$U;URL;;s;$one;ONE;"
            curl -sSL --fail --cacert ca.pem {plain}/$one
            get -g "$U/$one:(oai_dc)" | grep -c "<dc:identifier>$U/"
            get "$U/$(< service)?servicesubject=urlRequest&parsedibiurl.ibi=$one" | tr -d '\r' | grep '^url ' | sed "s;$U;URL;;s;$one;ONE;"
            get -r 0-1 $U/col/$one/doc/a%20b.txt
            "#
        ),
        "2 200 text/html; charset=utf-8\n0\n<baseURL>URL/oai</baseURL>\n302 URL/col/ONE/doc/a%20b.txt\ntext\n1\nurl URL/col/ONE/doc/a%20b.txt\nte",
    );
}

/// Sickle, a harvester, gets all records and sets of an Archive behind nginx, by https.
#[test]
fn a_harvester_by_tls() {
    let env = environment();
    let (nginx, _served) = behind_nginx(&env, "A", "");
    let python = crate::collections::validators().join("python");
    env.sh("for n in $(seq 150); do ibifs mint A > /dev/null; done");
    env.prints(
        &format!(
            r#"cat ca.pem > bundle; REQUESTS_CA_BUNDLE=$PWD/bundle '{}' - << 'END'
from sickle import Sickle
harvest = Sickle('https://localhost:{}/x/oai')
print(harvest.Identify().repositoryName, [each.setSpec for each in harvest.ListSets()])
print(len(list(harvest.ListIdentifiers(metadataPrefix='oai_dc'))), len(list(harvest.ListRecords(metadataPrefix='datacite'))))
first = harvest.ListRecords(metadataPrefix='oai_dc').resumption_token; print(first.complete_list_size, first.cursor)
print(len(list(harvest.ListRecords(metadataPrefix='oai_dc', set='example.org:archive-a'))))
END"#,
            python.display(),
            nginx.tls
        ),
        "Archive archive-a.example.org ['example.org', 'example.org:archive-a']\n151 151\n151 0\n151",
    );
}

/// Copies and originals go to an Archive behind nginx, if its certificate is that of a known authority.
#[test]
fn transfers_by_tls() {
    let env = environment();
    env.sh(
        "ibifs init B --host archive-b.example.net > /dev/null; mkdir none
         head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > token; touch tokens; chmod 600 token tokens",
    );
    let giver = Served::start(
        &env,
        "A --tls-cert own.pem --tls-key own.key --address 127.0.0.1:0",
    );
    assert!(giver.url.starts_with("https://"));
    env.sh(&format!("echo \"$(< token) {}\" > tokens", giver.url));
    let (nginx, _served) = behind_nginx(&env, "B", "--transfer-token-file tokens --ca-file ca.pem");
    let url = format!("https://localhost:{}/x", nginx.tls);
    let copy = "ibifs copy --store A --token-file token $(< one)";
    env.complains(&format!("{copy} {url}"), "certificate");
    env.complains(&format!("{copy} {url} --ca-file other.pem"), "certificate");
    env.complains(
        &format!("{copy} {url} --ca-file token"),
        "token: it holds no certificate",
    );
    env.complains(&format!("{copy} {url} --ca-file none.pem"), "none.pem: ");
    env.complains(
        &format!("SSL_CERT_FILE=/dev/null SSL_CERT_DIR=$PWD/none {copy} {url}"),
        "no certificates of authorities",
    );
    // The name of the certificate counts.
    env.complains(
        &format!("{copy} https://127.0.0.2:{}/x --ca-file ca.pem", nginx.tls),
        "the Archive at https://127.0.0.2",
    );
    // A token is not sent to where a server redirects.
    env.complains(
        &format!("{copy} http://localhost:{}/x --ca-file ca.pem", nginx.plain),
        "it redirects to https://localhost:",
    );
    env.sh(&format!(
        r#"
        {copy} {url} --ca-file ca.pem | grep -q '^copied: '
        SSL_CERT_FILE=ca.pem {copy} {url}/ | grep -q '^unchanged: '
        cmp "A/col/$(< one)/doc/a b.txt" "B/col/$(< one)/doc/a b.txt"
        ibifs transfer --store A --token-file token $(< one) {url} --ca-file ca.pem > said || {{ cat said; exit 1; }}
        ibifs show --store B $(< one) | grep -q 'Original'
        b=$(sed -n 's/^ibi.archiveservice {{rep \([^ ]*\) .*/\1/p' B/archive.ibi)
        ibifs fsck A --with {url}/$b --ca-file ca.pem
        # Another port of a host that is not public is another server.
        ibifs fsck A --with http://localhost:{}/x/$b --ca-file ca.pem 2> refused && exit 1
        grep -q 'no address of the host is public' refused
        "#,
        nginx.plain
    ));
}

/// A resolver with TLS of its own includes an Archive behind nginx, queries it, and leads readers there.
#[test]
fn a_resolver_by_tls() {
    let env = environment();
    let resolver = Served::resolver(
        &env,
        "--tls-cert own.pem --tls-key own.key --ca-file ca.pem --url https://127.0.0.1/r",
    );
    env.sh("ibifs resolver register --db r.db $(< service) > key; chmod 600 key");
    let base = resolver.url.clone();
    let (nginx, _served) = behind_nginx(&env, "A", "");
    // One that includes the Archive when nginx runs.
    let options = format!("--resolver {base} --registration-key-file key --ca-file ca.pem");
    let mut archive = Served::start(
        &env,
        &format!("A --url https://localhost:{}/x {options}", nginx.tls),
    );
    assert_eq!(
        archive.line(),
        format!("included with {base}/J8LNKB5R7W/3FUQHC5")
    );
    let url = format!("https://localhost:{}/x", nginx.tls);
    env.prints(
        &format!(
            r#"
            one=$(< one); get() {{ curl -sS --cacert ca.pem "$@"; }}
            ibifs resolver list --db r.db --json | jq -r '.[].address' | sed 's;{url};URL;'
            get -o /dev/null -w '%{{http_code}} %{{redirect_url}}\n' {base}/$one | sed 's;{url};URL;;'"s;$one;ONE;"
            get -L {base}/r/$one
            get -L -H 'Accept: application/x-bibtex' {base}/r/$one | grep -c '^@'
            get -o /dev/null -w '%{{redirect_url}}\n' -H 'Accept: application/x-bibtex' {base}/$one/a%20b.txt | sed 's;{url};URL;;'"s;$one;ONE;"
            get -I {base}/r/$one | grep -io '^vary: accept'
            get {base}/federatedArchives.txt | grep -o 'archiveurl [^ ]*' | sed 's;{url};URL;'
            get {base}/r/ | grep -o 'https://127.0.0.1/r/[^<]*'
            "#
        ),
        "URL\n302 URL/col/ONE/doc/a%20b.txt\ntext\n1\nURL/col/ONE/doc/a%20b.txt\nvary: Accept\narchiveurl URL\nhttps://127.0.0.1/r/8JMKD3MGP8W/34PGRBS",
    );
}

/// A key that only root reads cannot be read again, which is said at the start, with the remedy.
#[test]
fn a_key_that_cannot_be_read_again_is_named_at_the_start() {
    let env = environment();
    env.sh("cp own.pem cert; cp own.key key; chmod 600 key");
    let options = "A --tls-cert cert --tls-key key 2> log";
    let served = Served::start(&env, options);
    let shown = format!("curl -sSf --cacert ca.pem {}/ > page; cat log", served.url);
    let log = env.sh(&shown);
    for part in [
        "WARN ] the certificate will not be read again",
        "user 65534",
        "key: ",
        "setfacl",
        "restart",
    ] {
        assert!(log.contains(part), "{part} is not in: {log}");
    }
    drop(served);
    env.sh("setfacl -m u:65534:r key");
    let _served = Served::start(&env, options);
    env.prints("cat log", "");
}

/// A certificate is read again on SIGHUP; one that is none leaves the last one in use.
#[test]
fn a_certificate_is_read_again() {
    let env = environment();
    // Such as the user who it becomes can read.
    env.sh("cp own.pem cert; cp own.key key; chmod 644 key");
    let served = Served::start(&env, "A --tls-cert cert --tls-key key 2> log");
    let reload = format!("kill -HUP {}", served.process());
    let shown = format!(
        "curl -sSv --cacert ca.pem {}/ 2>&1 > page | sed -n 's/.*subject: CN *= *//p'; grep -c '<html' page",
        served.url
    );
    env.prints(&shown, "own\n1");
    env.sh(&format!("cp next.pem cert; cp next.key key; {reload}; shown() {{ {shown}; }}; waits eval '[ \"$(shown | xargs)\" = \"next 1\" ]'"));
    env.prints(&shown, "next\n1");
    env.sh(&format!(
        "cp own.pem cert; {reload}; waits grep 'stays in use' log"
    ));
    env.prints(&shown, "next\n1");
    // HTTP without TLS has no answer, and takes nothing from others.
    env.sh(&format!("! curl -s http://{}/", served.address()));
    env.prints(&shown, "next\n1");
    for (options, why) in [
        (
            "--tls-cert key --tls-key key",
            "key: it holds no certificate",
        ),
        (
            "--tls-cert own.pem --tls-key own.pem",
            "own.pem: it holds no private key",
        ),
        ("--tls-cert own.pem --tls-key next.key", "own.pem: "),
        ("--tls-cert own.pem", "--tls-key"),
    ] {
        env.complains(
            &format!("ibifs serve A --listen 127.0.0.1:0 {options}"),
            why,
        );
    }
}

/// Redirections are bounded; those to another host reach public addresses only.
#[test]
fn redirections() {
    let env = environment();
    let nginx = Nginx::start(
        &env,
        "location /loop/ { return 302 $request_uri; } location /private/ { return 302 https://127.0.0.1:$server_port/x; }
         location /down/ { return 302 http://localhost/; }",
    );
    for (path, why) in [
        ("loop", "it redirects to "),
        ("private", "the address is not public"),
        ("down", "it redirects to http://localhost/"),
    ] {
        let url = format!("https://localhost:{}/{path}/8JMKD3MGP8W/34PGRBS", nginx.tls);
        env.complains(&format!("ibifs fsck A --with {url} --ca-file ca.pem"), why);
    }
}

/// A proxy of the environment forwards requests, and tunnels those with TLS.
#[test]
fn proxies_of_the_environment() {
    let env = environment();
    env.sh("ibifs init B --host archive-b.example.net > /dev/null");
    std::fs::write(env.root().join("proxy.py"), PROXY).expect("written");
    let plain = Served::start(&env, "A");
    let tls = Served::start(&env, "A --tls-cert own.pem --tls-key own.key");
    let check = |url: &str| format!("ibifs fsck B --with {url}/$(< service) --ca-file ca.pem");
    env.sh(&format!(
        r#"
        python3 proxy.py > port & proxy=$!; trap 'kill $proxy' EXIT
        for i in $(seq 200); do [ -s port ] && break; sleep 0.05; done; port=$(< port)
        export http_proxy=http://me:secret@127.0.0.1:$port https_proxy=http://me:secret@127.0.0.1:$port
        {} ; {} ; no_proxy=127.0.0.1 {}
        diff asked - <<< $'GET http://{}/'"$(< service)"$' Basic bWU6c2VjcmV0\nCONNECT {} Basic bWU6c2VjcmV0'
        export https_proxy=socks5://127.0.0.1:$port
        ! {} 2> why; grep -q 'another scheme than http' why
        "#,
        check(&plain.url), check(&tls.url), check(&plain.url), plain.address(), tls.address(), check(&tls.url)
    ));
}

/// A proxy that forwards one request of a connection, or tunnels, and writes the requests into `asked`.
const PROXY: &str = r#"
import socket, threading, urllib.parse
def pump(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError: pass
def talk(client):
    head = b""
    while b"\r\n\r\n" not in head: head += client.recv(65536)
    method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
    lines = dict(l.split(": ", 1) for l in head.decode().split("\r\n")[1:] if ": " in l)
    auth = {k.lower(): v for k, v in lines.items()}.get("proxy-authorization", "none")
    with open("asked", "a") as f: f.write(f"{method} {target.split('?')[0]} {auth}\n")
    if method == "CONNECT":
        host, port = target.rsplit(":", 1)
        server = socket.create_connection((host, int(port)))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    else:
        url = urllib.parse.urlsplit(target)
        server = socket.create_connection((url.hostname, url.port))
        server.sendall(head.replace(target.encode(), (url.path + "?" + url.query).encode(), 1))
    threading.Thread(target=pump, args=(server, client), daemon=True).start()
    pump(client, server)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True: threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
"#;
