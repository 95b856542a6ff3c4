//! TLS handshakes that never end, or are larger than any is: others are answered meanwhile, and little memory is used.

use crate::http::https::AUTHORITY;
use crate::http::served::Served;
use crate::support::TestEnv;

fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh(&format!(
        "{AUTHORITY} authority ca; certificate own; chmod 644 own.key
         for s in A B; do ibifs init $s --host archive-$s.example.org > /dev/null; done
         sed -n 's/^ibi.archiveservice {{rep \\([^ ]*\\) .*/\\1/p' A/archive.ibi > service"
    ));
    env
}

/// Four clients hold 1,000 connections without a handshake, or begin a message of 16 MiB on each; a message that comes byte by
/// byte is cut off.
#[test]
fn handshakes_that_never_end_delay_no_other_client() {
    let env = environment();
    let archive = Served::start(&env, "A --tls-cert own.pem --tls-key own.key");
    let resolver = Served::resolver(&env, "--tls-cert own.pem --tls-key own.key");
    // Both have the code that cuts off; to wait for it once is enough.
    for (served, waits, expected) in [
        (&archive, "waits", "200 200 200 200 cut off little"),
        (&resolver, "", "200 200 200 200 little"),
    ] {
        served.prints(
            &env,
            &format!(
                r#"python3 -c '
import resource, socket, subprocess, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
host, port = sys.argv[1].split(":"); pid = sys.argv[2]
def connect(client):
    s = socket.socket(); s.bind((client, 0)); s.connect((host, int(port))); s.settimeout(30); return s
def others():
    for client in "127.0.0.9", "127.0.0.1":
        curl = ["curl", "-s", "-o", "/dev/null", "--cacert", "ca.pem", "--interface", client, "-m", "5", "-w", "%{{http_code}}", f"https://{{host}}:{{port}}/"]
        print(subprocess.run(curl, capture_output=True, text=True).stdout, end=" ")
many = [connect(f"127.0.0.{{2 + i % 4}}") for i in range(1000)]; others()
record = b"\x16\x03\x01\x40\x00"
begun = record + b"\x01\xff\xff\xff" + b"a" * 16380
for s in many:
    try:
        s.sendall(begun)
        for i in range(10): s.sendall(record + b"a" * 16384)
    except OSError: pass
others()
if sys.argv[3]:
    slow = connect("127.0.0.6")
    try:
        for byte in record + b"\x01\x00\x3f\xfc\x03\x03" + b"a" * 100: slow.sendall(bytes([byte])); time.sleep(0.3)
        print("goes on", end=" ")
    except OSError: print("cut off", end=" ")
memory = [int(l.split()[1]) for l in open(f"/proc/{{pid}}/status") if l.startswith("VmHWM")][0]
print("little" if memory < 200000 else memory)' {} {} '{waits}'"#,
                served.address(),
                served.process()
            ),
            expected,
        );
    }
}

/// A server that has a chain of certificates of 1.5 MB, answers nothing, or sends one message without end: the client gives up
/// within seconds.
#[test]
fn a_server_whose_handshake_never_ends_is_given_up() {
    let env = environment();
    env.prints(
        r#"for i in $(seq 2500); do cat ca.pem; done > chain.pem
        python3 -c '
import socket, ssl, threading
def serve(number, talk):
    listener = socket.create_server(("127.0.0.1", 0)); open(f"port{number}", "w").write(str(listener.getsockname()[1]))
    def each(c):
        try: talk(c)
        except OSError: pass
    kept = []
    while True: kept.append(listener.accept()[0]); threading.Thread(target=each, args=(kept[-1],), daemon=True).start()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("chain.pem", "ca.key")
def endless(c):
    c.sendall(b"\x16\x03\x03\x40\x00\x02\xff\xff\xff" + b"a" * 16380)
    while True: c.sendall(b"\x16\x03\x03\x40\x00" + b"a" * 16384)
for number, talk in enumerate([lambda c: context.wrap_socket(c, server_side=True), lambda c: None, endless]):
    threading.Thread(target=serve, args=(number, talk), daemon=True).start()
threading.Event().wait()' & trap "kill $!" EXIT
        for n in 0 1 2; do
            until test -s port$n; do sleep 0.05; done
            (ulimit -v 2000000; timeout 20 ibifs fsck B --with https://localhost:$(< port$n)/$(< service) --ca-file ca.pem 2> why) && echo checked || echo $?
            grep -o 'HandshakePayloadTooLarge\|no connection in' why || cat why
        done"#,
        "1\nHandshakePayloadTooLarge\n1\nno connection in\n1\nHandshakePayloadTooLarge",
    );
}
