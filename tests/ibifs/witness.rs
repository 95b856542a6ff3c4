//! An Archive as a witness of the logs of others, with logs that the test keeps, and with the witness and the client of
//! other authors.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use ibifs::formats::base_url::BaseUrl;
use ibifs::formats::tlog::checkpoint::{Checkpoint, seen_at};
use ibifs::formats::tlog::merkle::{Hash, consistency, empty, leaf, root};
use ibifs::formats::tlog::note::{KeyKind, Note, Signature, SignerKey, VerifierKey};
use ibifs::formats::tlog::witness::{AddCheckpoint, file_name};
use ibifs::outside::http::Network;
use ibifs::outside::web::witness::{WitnessError, ask_witness};

use crate::collections::validators;
use crate::http::served::Served;
use crate::support::TestEnv;

const ORIGIN: &str = "archive-b.example.net/log";

/// A log that signs what it likes.
struct Log {
    key: SignerKey,
    leaves: Vec<Hash>,
}

impl Log {
    fn new(origin: &str, seed: u8) -> Log {
        let key = SignerKey::new(origin, KeyKind::Ed25519, &[seed; 32]).expect("a key");
        let leaves = (0..40_u8).map(|number| leaf(&[number])).collect();
        Log { key, leaves }
    }

    /// The same log with another history from an entry on.
    fn forked(&self, from: usize) -> Log {
        let mut other = Log::new(self.key.verifier().name(), 1);
        let leaves = other.leaves.iter_mut().skip(from);
        leaves.for_each(|it| *it = leaf(&it[..]));
        other
    }

    fn checkpoint(&self, size: u64) -> Note {
        let checkpoint = Checkpoint {
            origin: self.key.verifier().name().to_owned(),
            size,
            root: root(&self.leaves[..size as usize]).unwrap_or(empty()),
        };
        let text = checkpoint.to_string();
        let signatures = vec![self.key.signature_of(&text)];
        Note { text, signatures }
    }

    fn proof(&self, old: u64, size: u64) -> Vec<Hash> {
        let mut part = |begin: u64, end: u64| {
            let leaves = &self.leaves[begin as usize..end as usize];
            Ok::<_, Infallible>(root(leaves).expect("entries"))
        };
        match old {
            0 => Vec::new(),
            old => consistency(old, size, &mut part).expect("hashes"),
        }
    }

    /// A request from one size to another.
    fn request(&self, old: u64, size: u64) -> String {
        let asked = AddCheckpoint {
            old,
            proof: if old < size {
                self.proof(old, size)
            } else {
                Vec::new()
            },
            note: self.checkpoint(size),
        };
        asked.to_string()
    }
}

/// A witness of the log [`ORIGIN`] and of another one, whose messages are in the file `log`.
fn witness() -> (Served, TestEnv) {
    let env = TestEnv::new();
    env.sh("ibifs init A --host archive-a.example.org > /dev/null");
    let (one, other) = (Log::new(ORIGIN, 1), Log::new("other.example.net/log", 2));
    let keys = [one, other].map(|log| log.key.verifier().to_string());
    let list = format!("# Neighbours.\n\n{}  # us\n{}\n", keys[0], keys[1]);
    std::fs::write(env.root().join("logs"), list).expect("written");
    (serve(&env), env)
}

fn serve(env: &TestEnv) -> Served {
    let by = "bash -c 'exec \"$@\" 2>> log' bash";
    Served::within(env, by, "serve A --witness-logs logs")
}

fn client() -> Network {
    Network::new(None).expect("a network")
}

fn url(served: &Served) -> BaseUrl {
    BaseUrl::parse(&served.url).expect("a URL")
}

/// The public key of the witness, as it publishes it.
fn key_of(served: &Served, env: &TestEnv) -> VerifierKey {
    VerifierKey::parse(&served.sh(env, "get $U/witness-key")).expect("a key")
}

/// The status, the media type and the body of the answer to a request.
#[track_caller]
fn post(served: &Served, env: &TestEnv, body: &str) -> String {
    std::fs::write(env.root().join("body"), body).expect("written");
    served.sh(
        env,
        "curl -sS -o answer -w '%{http_code} %{content_type}: ' --data-binary @body $U/add-checkpoint; cat answer",
    )
}

#[track_caller]
fn check(served: &Served, env: &TestEnv, body: &str, expected: &str) {
    let answer = post(served, env, body);
    assert!(answer.starts_with(expected), "{answer}\nto {body}");
}

/// The cosignature that is the answer to a request.
#[track_caller]
fn cosigned(served: &Served, env: &TestEnv, body: &str) -> u64 {
    let answer = post(served, env, body);
    let lines = answer.strip_prefix("200 text/plain; charset=utf-8: ");
    let lines = lines.unwrap_or_else(|| panic!("{answer}\nto {body}"));
    let note = AddCheckpoint::parse(body).expect("a request").note;
    let note = Note::parse(&format!("{}\n{lines}\n", note.text)).expect("a note");
    assert_eq!(note.signatures.len(), 1);
    seen_at(&note, &key_of(served, env)).expect("a cosignature")
}

#[test]
fn only_one_history_of_a_log_is_cosigned() {
    let (served, env) = witness();
    let log = Log::new(ORIGIN, 1);
    let now: u64 = env.sh("date +%s").parse().expect("a number");
    let conflict = |size| format!("409 text/x.tlog.size: {size}");
    // The size is not known to the log.
    check(&served, &env, &log.request(5, 7), &conflict(0));
    let time = cosigned(&served, &env, &log.request(0, 0));
    assert!((now..now + 60).contains(&time), "{time} {now}");
    cosigned(&served, &env, &log.request(0, 7));
    check(&served, &env, &log.request(0, 7), &conflict(7));
    cosigned(&served, &env, &log.request(7, 7));
    cosigned(&served, &env, &log.request(7, 13));
    check(&served, &env, &log.request(0, 20), &conflict(13));
    check(&served, &env, &log.request(7, 20), &conflict(13));
    assert_eq!(env.sh("cat log"), "");
    // An older checkpoint, and another history.
    check(&served, &env, &log.request(7, 7), &conflict(13));
    let forked = log.forked(10);
    check(&served, &env, &forked.request(13, 13), &conflict(13));
    check(&served, &env, &forked.request(7, 13), &conflict(13));
    env.prints(
        "sed -E 's/^.* WARN *] //; s/root [0-9a-f]{64}/ROOT/; s/before [0-9a-f]{64}/BEFORE/' log",
        "the log \"archive-b.example.net/log\" shows 7 entries, and has shown 13 before: it was cut, or an old checkpoint is sent again\n\
         the log \"archive-b.example.net/log\" has a split view: of its 13 entries it has signed the ROOT, and BEFORE, which is cosigned here\n\
         the log \"archive-b.example.net/log\" has a split view: of its 13 entries it has signed the ROOT, and BEFORE, which is cosigned here",
    );
    check(&served, &env, &forked.request(13, 30), "422 ");
    let short = log.request(13, 30).replacen("old 13\n", "old 13\n\n", 1);
    check(&served, &env, &short, "400 ");
    let mut asked = AddCheckpoint::parse(&log.request(13, 30)).expect("a request");
    asked.proof.reverse();
    check(&served, &env, &asked.to_string(), "422 ");
    asked.proof.clear();
    check(&served, &env, &asked.to_string(), "422 ");
    cosigned(&served, &env, &log.request(13, 30));
    // Each log has its own history.
    let other = Log::new("other.example.net/log", 2);
    cosigned(&served, &env, &other.request(0, 4));
    cosigned(&served, &env, &other.request(4, 5));
}

#[test]
fn what_is_not_signed_or_not_a_request_is_refused() {
    let (served, env) = witness();
    let log = Log::new(ORIGIN, 1);
    let good = log.request(0, 7);
    for (body, expected) in [
        (Log::new("strange.example.net/log", 1).request(0, 7), "404 "),
        // The key of the other log, under this name, and a changed text.
        (Log::new(ORIGIN, 2).request(0, 7), "403 "),
        (good.replace("\n7\n", "\n8\n"), "403 "),
        (good.replace("old 0", "old 8"), "400 "),
        (good.replace("old 0", "old 00"), "400 "),
        (good.replace("old 0\n", ""), "400 "),
        (good.trim_end().to_owned(), "400 "),
        (String::new(), "400 "),
        ("\u{0}".to_owned(), "400 "),
        (good.replace("\n7\n", "\n07\n"), "400 "),
        (log.request(6, 7).replace("old 6\n", "old 6\n+\n"), "400 "),
        // A proof from nothing.
        (log.request(6, 7).replace("old 6", "old 0"), "422 "),
    ] {
        check(&served, &env, &body, expected);
    }
    // An empty line among further lines of the checkpoint.
    let text = format!("{}more\n\nand more\n", log.checkpoint(7).text);
    let signatures = vec![log.key.signature_of(&text)];
    let note = Note { text, signatures };
    check(&served, &env, &format!("old 0\n\n{note}"), "400 ");
    // Signatures of unknown keys are passed over, but not without end.
    let with = |count: usize| {
        let strange = Log::new("strange.example.net/log", 3).key.signature_of("");
        format!("{good}{}", strange.to_string().repeat(count))
    };
    check(&served, &env, &with(100), "400 ");
    check(&served, &env, &with(2000), "413 ");
    // A client that reads nothing until all is sent gets the answer.
    std::fs::write(env.root().join("body"), with(2000)).expect("written");
    served.prints(
        &env,
        r#"python3 - ${U#http://} <<'END'
import socket, sys, time
host, port = sys.argv[1].split(':'); body = open('body', 'rb').read()
client = socket.create_connection((host, int(port)))
client.sendall(b'POST /add-checkpoint HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n' % len(body))
for at in range(0, len(body), 20000):
    client.sendall(body[at:at + 20000]); time.sleep(.02)
print(client.makefile().readline().strip())
END"#,
        "HTTP/1.1 413 Payload Too Large",
    );
    cosigned(&served, &env, &with(99));
    served.prints(&env, "status $U/add-checkpoint", "405");
    served.prints(&env, "status -X PUT -d x $U/add-checkpoint", "405");
    // An incomplete body.
    served.prints(
        &env,
        &format!(
            r"exec 3<> /dev/tcp/{}; printf 'POST /add-checkpoint HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nold' >&3
              head -n 1 <&3 | tr -d '\r'",
            served.address().replace(':', "/")
        ),
        "HTTP/1.1 408 Request Timeout",
    );
    drop(served);
    let served = Served::start(&env, "A");
    check(&served, &env, &log.request(7, 8), "404 ");
    served.prints(&env, "status $U/witness-key", "404");
}

#[test]
fn a_witness_keeps_its_key_and_what_it_has_seen() {
    let (served, env) = witness();
    let log = Log::new(ORIGIN, 1);
    let key = key_of(&served, &env);
    assert_eq!(key.name(), "archive-a.example.org");
    assert_eq!(env.sh("cat A/witness/key.pub"), key.to_string());
    cosigned(&served, &env, &log.request(0, 7));
    let mut served = served;
    for size in 8..20 {
        // With SIGKILL right after the answer.
        cosigned(&served, &env, &log.request(size - 1, size));
        served.kill();
        served = serve(&env);
        let conflict = format!("409 text/x.tlog.size: {size}");
        check(&served, &env, &log.request(0, size), &conflict);
    }
    assert_eq!(key_of(&served, &env), key);
    env.prints(
        &format!(
            "stat -c '%a %F' A/witness A/witness/key A/witness/{}; ls A/witness | wc -l; ibifs fsck A",
            file_name(ORIGIN)
        ),
        "700 directory\n600 regular file\n600 regular file\n4\n1 item, 0 findings",
    );
    // A write that was cut off leaves what was before.
    drop(served);
    let file = env.root().join("A/witness").join(file_name(ORIGIN));
    let mut places = std::fs::read(&file).expect("read");
    let at = places.chunks(4096).position(|it| it.starts_with(b"19 "));
    places[at.expect("a place") * 4096 + 40] ^= 1;
    std::fs::write(&file, places).expect("written");
    let served = serve(&env);
    check(
        &served,
        &env,
        &log.request(0, 19),
        "409 text/x.tlog.size: 18",
    );
}

#[test]
fn two_services_of_a_store_cosign_as_one() {
    let (one, env) = witness();
    let other = serve(&env);
    assert_eq!(key_of(&one, &env), key_of(&other, &env));
    let (key, network) = (key_of(&one, &env), client());
    let mut leaves = Log::new(ORIGIN, 1).leaves;
    // Of six histories that differ in the last entry, of which each service is asked for three at once, one is cosigned.
    for size in 1..=20 {
        let fork = |number: usize| {
            let mut log = Log::new(ORIGIN, 1);
            log.leaves.clone_from(&leaves);
            log.leaves[size - 1] = leaf(&[number as u8, size as u8]);
            log
        };
        let forks: Vec<Log> = (0..6).map(fork).collect();
        let ask = |number: usize| {
            let (url, log) = (url([&one, &other][number % 2]), &forks[number]);
            let (old, size) = (size as u64 - 1, size as u64);
            let proof = log.proof(old, size);
            ask_witness(&url, &key, old, &proof, &log.checkpoint(size), &network)
        };
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..6)
                .map(|number| scope.spawn(move || ask(number)))
                .collect();
            let answers = asking.into_iter().map(|it| it.join().expect("an answer"));
            answers.collect()
        });
        let is_known =
            |error: &WitnessError| matches!(error, WitnessError::Known(it) if *it == size as u64);
        assert!(
            answers
                .iter()
                .filter_map(|it| it.as_ref().err())
                .all(is_known),
            "{answers:?}"
        );
        let cosigned: Vec<_> = (0..6).filter(|number| answers[*number].is_ok()).collect();
        assert_eq!(cosigned.len(), 1, "{answers:?}");
        leaves.clone_from(&forks[cosigned[0]].leaves);
    }
    // What one has cosigned, the other knows.
    let other_log = Log::new("other.example.net/log", 2);
    for size in 1..20 {
        let served = if size % 2 == 0 { &one } else { &other };
        cosigned(served, &env, &other_log.request(size - 1, size));
    }
    // A process that has the lock and does not go on holds up nothing for long.
    let file = env
        .root()
        .join("A/witness")
        .join(file_name("other.example.net/log"));
    let file = std::fs::File::open(file).expect("opened");
    file.lock().expect("locked");
    check(&one, &env, &other_log.request(19, 20), "503 ");
    file.unlock().expect("unlocked");
    cosigned(&one, &env, &other_log.request(19, 20));
}

#[test]
fn what_others_have_put_in_its_place_is_refused() {
    let (served, env) = witness();
    drop(served);
    let file = file_name(ORIGIN);
    env.sh("cp -a A/witness kept; echo bad > bad; echo 'key' > keys");
    for (change, expected) in [
        (
            format!("ln -sf ../../kept/{file} A/witness/{file}"),
            "Invalid argument",
        ),
        (
            format!("rm A/witness/{file}; mkfifo A/witness/{file}"),
            "Invalid argument",
        ),
        (format!("> A/witness/{file}"), "is damaged"),
        (
            format!(
                "cp A/witness/{} A/witness/{file}",
                file_name("other.example.net/log")
            ),
            "is damaged",
        ),
        (
            "ln -sf ../../kept/key A/witness/key".to_owned(),
            "Invalid argument",
        ),
        (
            "echo 12 > A/witness/key".to_owned(),
            "'witness/key' of the store is damaged",
        ),
        (
            "rm -r A/witness; ln -s ../kept A/witness".to_owned(),
            "cannot open 'witness'",
        ),
    ] {
        env.complains(
            &format!("{change}; timeout 20 ibifs serve A --witness-logs logs --listen 127.0.0.1:0"),
            expected,
        );
        env.sh("rm -r A/witness; cp -a kept A/witness");
    }
    env.complains(
        "timeout 20 ibifs serve A --witness-logs keys --listen 127.0.0.1:0",
        "keys: line 1: expected the key of a log for Ed25519 in the form NAME+HASH+KEY",
    );
    env.exits("ibifs serve A --witness-logs keys", 2);
    let served = serve(&env);
    cosigned(&served, &env, &Log::new(ORIGIN, 1).request(0, 1));
}

#[test]
fn the_client_takes_a_cosignature_by_the_key_alone() {
    let (served, env) = witness();
    let log = Log::new(ORIGIN, 1);
    let (key, network) = (key_of(&served, &env), client());
    let ask = |url: &BaseUrl, key: &VerifierKey, old, size| {
        let proof = log.proof(old, size);
        ask_witness(url, key, old, &proof, &log.checkpoint(size), &network)
    };
    let url = url(&served);
    let signed = |signature: Signature, size| {
        let signatures = vec![signature];
        let note = Note {
            signatures,
            ..log.checkpoint(size)
        };
        seen_at(&note, &key)
    };
    let first = ask(&url, &key, 0, 7).expect("cosigned");
    assert!(signed(first, 7).is_ok());
    let known = ask(&url, &key, 3, 9);
    assert!(matches!(known, Err(WitnessError::Known(7))), "{known:?}");
    let next = ask(&url, &key, 7, 9).expect("cosigned");
    assert!(signed(next, 9).is_ok());
    let strange = SignerKey::new("archive-a.example.org", KeyKind::Cosignature, &[9; 32]);
    let strange = ask(&url, strange.expect("a key").verifier(), 9, 10);
    assert!(
        matches!(strange, Err(WitnessError::NotCosigned)),
        "{strange:?}"
    );
    // Answers of a witness that means harm.
    let long = format!("200 OK\r\n\r\n{}", "x".repeat(70_000));
    for (answer, expected) in [
        ("200 OK\r\n\r\n", "is no cosignature"),
        ("200 OK\r\n\r\n\u{2014} a AAAAAAA=\n", "is no cosignature"),
        (long.as_str(), "more than 65536 bytes"),
        ("409 Conflict\r\n\r\n07\n", "status 409"),
        ("500 Error\r\n\r\n?", "status 500: ?"),
        ("302 Found\r\nLocation: /\r\n\r\n", "status 302"),
    ] {
        let url = replying(format!("HTTP/1.1 {answer}"));
        let error = ask(&url, &key, 0, 7)
            .expect_err("no cosignature")
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The URL of a server that gives one answer.
fn replying(answer: String) -> BaseUrl {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut got = Vec::new();
        // A request ends with the signature of the log.
        while !String::from_utf8_lossy(&got).contains("\n\u{2014} ") || !got.ends_with(b"\n") {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).expect("bytes");
            got.extend_from_slice(&piece[..count]);
        }
        let _ = stream.write_all(answer.as_bytes());
    });
    BaseUrl::parse(&format!("http://{address}")).expect("a URL")
}

/// The client of aics-witness has checkpoints cosigned here, and its verifier accepts the cosignatures.
#[test]
fn the_client_of_others_is_answered() {
    let (served, env) = witness();
    let seed = "01".repeat(32);
    let script = format!(
        r#"
import sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from aics_tlog import Checkpoint, MerkleTree, sign_checkpoint
from aics_witness.feeder import WitnessClient, WitnessConflict, WitnessRejected
url, vkey = sys.argv[1:]
key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex("{seed}"))
def note(tree, size):
    return sign_checkpoint(Checkpoint("{ORIGIN}", size, tree.root(size)), key, "{ORIGIN}").to_bytes()
tree = MerkleTree(bytes([number % 256]) for number in range(300))
client = WitnessClient(url, vkey)
for size in [1, 2, 3, 4, 7, 8, 9, 64, 65, 255, 256, 300, 300]:
    line = client.submit(note(tree, size), tree.consistency_proof)
    assert line.startswith("— archive-a.example.org "), line
# One that has forgotten how far it was.
WitnessClient(url, vkey).submit(note(tree, 300), tree.consistency_proof)
other = MerkleTree(bytes([number % 256, 1]) for number in range(400))
for size in [300, 400, 100]:
    try:
        WitnessClient(url, vkey).submit(note(other, size), other.consistency_proof)
        raise SystemExit(f"{{size}} is cosigned")
    except (WitnessRejected, WitnessConflict) as refused:
        print(size, type(refused).__name__)
"#
    );
    std::fs::write(env.root().join("client.py"), script).expect("written");
    served.prints(
        &env,
        &format!(
            "'{}/python' client.py $U $(get $U/witness-key)",
            validators().display()
        ),
        "300 WitnessRejected\n400 WitnessRejected\n100 WitnessAhead",
    );
}

/// The witness of aics-witness accepts the requests of the client here.
#[test]
fn the_witness_of_others_is_asked() {
    let env = TestEnv::new();
    let log = Log::new(ORIGIN, 1);
    let python = format!("'{}/python' -m aics_witness", validators().display());
    let key = env.sh(&format!(
        "{python} init --config w.json --name witness.example.org/w1 --listen 127.0.0.1:0 2> said
         {python} add-log --config w.json --origin {ORIGIN} --vkey {} > added 2>&1",
        log.key.verifier()
    ));
    let key = VerifierKey::parse(&key).expect("a key");
    let mut child = env
        .command(&format!("exec {python} serve --config w.json"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("python runs");
    let lines = BufReader::new(child.stderr.take().expect("its messages")).lines();
    let url = lines.map_while(Result::ok).find_map(|line| {
        let (_, url) = line.split_once("listening on ")?;
        BaseUrl::parse(url.split(' ').next()?).ok()
    });
    let (url, network) = (url.expect("a URL"), client());
    let ask = |log: &Log, old, size| {
        let proof = log.proof(old, size);
        ask_witness(&url, &key, old, &proof, &log.checkpoint(size), &network)
    };
    let mut old = 0;
    for size in [1, 2, 3, 8, 9, 31, 32, 40, 40] {
        let signed = ask(&log, old, size);
        assert!(signed.is_ok(), "{old} {size} {signed:?}");
        old = size;
    }
    let known = ask(&log, 3, 40);
    assert!(matches!(known, Err(WitnessError::Known(40))), "{known:?}");
    let strange = ask(&Log::new("strange.example.net/log", 1), 0, 7);
    let error = strange.expect_err("no cosignature").to_string();
    assert!(error.starts_with("status 404"), "{error}");
    child.kill().expect("killed");
    child.wait().expect("ended");
}
