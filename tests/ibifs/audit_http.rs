//! Audits among Archives over HTTP: only listed ones may ask, what they are shown was read now, and an Archive that lies is found
//! out.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ibifs::formats::audit::{
    AnswerHead, AnswerLine, AuditAnswer, AuditProof, AuditRequest, Challenge, ItemAnswer, Parties,
    Role, SaidOfItself, SentFiles,
};
use ibifs::formats::copies::Gone;
use ibifs::formats::fixity::Digest;
use ibifs::formats::tlog::note::{KeyKind, SignerKey};
use ibifs::ibi::Ibi;
use sha2::{Digest as _, Sha256};

use crate::http::served::Served;
use crate::support::TestEnv;

fn key(name: &str, seed: u8) -> SignerKey {
    SignerKey::new(name, KeyKind::Ed25519, &[seed; 32]).expect("a key")
}

fn key_a() -> SignerKey {
    key("archive-a.example.org", 1)
}

fn key_b() -> SignerKey {
    key("archive-b.example.net", 2)
}

/// The stores A and B, with keys that the test knows, of which each lists the other. B has copies of so many items of A, whose
/// names are in `items`.
fn pair(items: usize) -> TestEnv {
    let env = TestEnv::new();
    let (a, b) = (key_a(), key_b());
    env.sh(&format!(
        "ibifs init A --host archive-a.example.org > said; ibifs init B --host archive-b.example.net > said
         for s in A:01 B:02; do mkdir -m 700 ${{s%:*}}/audit
             printf \"${{s#*:}}%.0s\" {{1..32}} > ${{s%:*}}/audit/key; chmod 600 ${{s%:*}}/audit/key; done
         echo 'audit {{http://127.0.0.1:1 {}}}' >> A/archive.ibi
         echo 'audit {{http://127.0.0.1:1 {}}}' >> B/archive.ibi
         ibifs mint A --count {items} | grep /20 > items
         while read -r item; do echo $item > A/col/$item/doc/file; echo more > A/col/$item/doc/more; touch -d 2026-01-02 A/col/$item/doc/*; done < items
         ibifs scrub A > said; ibifs copy --store A $(< items) B > said",
        b.verifier(),
        a.verifier()
    ));
    env
}

fn serve(env: &TestEnv, store: &str) -> Served {
    let by = "bash -c 'exec \"$@\" 2>> log' bash";
    Served::within(env, by, &format!("serve {store}"))
}

fn items(env: &TestEnv) -> Vec<Ibi> {
    let names = env.sh("cat items");
    names.lines().map(|it| Ibi::parse(it).expect(it)).collect()
}

/// A request of A to B for items, as it would be now.
fn request(env: &TestEnv, items: Vec<Ibi>) -> AuditRequest {
    AuditRequest {
        parties: Parties {
            asker: key_a().verifier().clone(),
            answerer: key_b().verifier().clone(),
        },
        time: env.sh("date +%s%6N").parse().expect("a number"),
        nonce: Digest([9; 32]),
        seconds: 60,
        wants_files: true,
        gone: Vec::new(),
        items,
    }
}

/// The status and the body of the answer to a text.
#[track_caller]
fn post(served: &Served, env: &TestEnv, text: &str) -> (String, String) {
    std::fs::write(env.root().join("body"), text).expect("written");
    let status = served.sh(
        env,
        "curl -sS -o answer -w '%{http_code}' --data-binary @body $U/audit",
    );
    let answer = std::fs::read_to_string(env.root().join("answer")).expect("read");
    (status, answer)
}

#[track_caller]
fn refused(served: &Served, env: &TestEnv, text: &str, expected: &str) {
    let (status, answer) = post(served, env, text);
    assert_eq!(status, expected, "{answer}");
    assert!(!answer.contains("item "), "{answer}");
}

fn said_by_a(service: &str) -> SaidOfItself {
    SaidOfItself {
        service: Ibi::parse(service).expect("a name").into(),
        place: vec!["br".to_owned(), "sp".to_owned()],
    }
}

/// The digests that a side keeps of the files of an item.
fn kept(answer: &AuditAnswer, item: &Ibi, files: &[(&str, &str)]) -> SentFiles {
    let digest = |path: &str, content: &str| {
        let before = answer
            .head
            .challenge
            .before(item, path.as_bytes(), content.len() as u64);
        let hasher = Sha256::new_with_prefix(before).chain_update(content);
        Digest(hasher.finalize().into())
    };
    let files = files
        .iter()
        .map(|(path, content)| (path.as_bytes().to_vec(), digest(path, content)));
    files.collect::<BTreeMap<_, _>>()
}

#[test]
fn an_answer_is_over_the_content_that_is_there_now() {
    let env = pair(2);
    let served = serve(&env, "B");
    let items = items(&env);
    let asked = request(&env, items.clone());
    let (status, text) = post(&served, &env, &asked.signed(&key_a()));
    assert_eq!(status, "200", "{text}");
    let answer = AuditAnswer::open(&text, &asked).expect("an answer");
    assert!(
        answer.head.said.service.to_string().contains("archive-b"),
        "{text}"
    );
    let challenge = &answer.head.challenge;
    let mut shown = Vec::new();
    for (item, (answered, files)) in items.iter().zip(&answer.items) {
        let content = format!("{item}\n");
        let kept = kept(
            &answer,
            item,
            &[("doc/file", &content), ("doc/more", "more\n")],
        );
        assert_eq!(
            *answered,
            ItemAnswer::Read(challenge.of_item(Role::Answerer, item, &kept))
        );
        let sent = kept
            .iter()
            .map(|(path, it)| (path.clone(), challenge.of_file(Role::Answerer, it)));
        assert_eq!(*files, sent.collect::<SentFiles>());
        shown.push((item.clone(), challenge.of_item(Role::Asker, item, &kept)));
    }
    // What B sent is not what A has to show.
    let proof = |items| {
        AuditProof {
            challenge: challenge.clone(),
            said: said_by_a("example.org/archive-a/2026/01.01.00.00"),
            items,
        }
        .signed(&key_a())
    };
    let (status, said) = post(&served, &env, &proof(shown.clone()));
    assert_eq!((&*status, &*said), ("200", "same 2 other 0\n"));
    // It counts once.
    refused(&served, &env, &proof(shown), "409");
    // A byte is flipped, and neither size nor time show it.
    env.sh("f=B/col/$(head -n 1 items)/doc/file; touch -r $f time; printf X | dd of=$f conv=notrunc status=none; touch -r time $f");
    let later = request(&env, items.clone());
    let (_, text) = post(&served, &env, &later.signed(&key_a()));
    let changed = AuditAnswer::open(&text, &later).expect("an answer");
    let kept = |number: usize| {
        let content = format!("{}\n", items[number]);
        let kept = kept(
            &changed,
            &items[number],
            &[("doc/file", &content), ("doc/more", "more\n")],
        );
        ItemAnswer::Read(
            changed
                .head
                .challenge
                .of_item(Role::Answerer, &items[number], &kept),
        )
    };
    assert_eq!(changed.items[1].0, kept(1));
    assert_ne!(changed.items[0].0, kept(0));
    // What is not held, and what the public may not read, is the same.
    env.sh("chmod 700 B/col/$(head -n 1 items)");
    let mut other = request(
        &env,
        vec![
            items[0].clone(),
            Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("a name"),
            items[1].clone(),
        ],
    );
    other.wants_files = false;
    let (_, text) = post(&served, &env, &other.signed(&key_a()));
    let answer = AuditAnswer::open(&text, &other).expect("an answer");
    assert_eq!(
        answer.items[..2],
        [
            (ItemAnswer::Missing, SentFiles::new()),
            (ItemAnswer::Missing, SentFiles::new())
        ]
    );
    assert!(matches!(answer.items[2], (ItemAnswer::Read(_), _)));
    served.prints(
        &env,
        "get $U/audit-key; cat B/audit/key.pub",
        &format!("{0}\n{0}", key_b().verifier()),
    );
    env.prints("cat log", "");
}

#[test]
fn only_a_listed_archive_has_something_read() {
    let env = pair(1);
    let served = serve(&env, "B");
    let items = items(&env);
    let good = request(&env, items.clone());
    let stranger = key("archive-a.example.org", 7);
    let mut strange = good.clone();
    strange.parties.asker = stranger.verifier().clone();
    refused(&served, &env, &strange.signed(&stranger), "403");
    refused(&served, &env, &good.signed(&stranger), "403");
    let mut other = good.clone();
    other.parties.answerer = key("archive-b.example.net", 7).verifier().clone();
    refused(&served, &env, &other.signed(&key_a()), "403");
    for (text, status) in [
        (
            good.signed(&key_a()).replace("seconds 60", "seconds 61"),
            "403",
        ),
        (good.to_string(), "400"),
        (String::new(), "400"),
        ("x".repeat(300 << 10), "413"),
        (
            format!("{}\n\u{2014} x AAAAAAA=\n", good.to_string().repeat(400)),
            "403",
        ),
    ] {
        refused(&served, &env, &text, status);
    }
    for ahead in [-16 * 60 * 1_000_000_i64, 16 * 60 * 1_000_000] {
        let mut late = good.clone();
        late.time = late.time.saturating_add_signed(ahead);
        refused(&served, &env, &late.signed(&key_a()), "403");
    }
    served.prints(
        &env,
        "status $U/audit; status -I $U/audit; status -X PUT -d x $U/audit; curl -sSi $U/audit | tr -d '\\r' | sed -n 's/^allow: //p'",
        "405\n405\n405\nPOST",
    );
    // One that was sent before is not answered again.
    let (status, text) = post(&served, &env, &good.signed(&key_a()));
    assert_eq!(status, "200", "{text}");
    refused(&served, &env, &good.signed(&key_a()), "403");
    let mut earlier = good.clone();
    earlier.time -= 1;
    refused(&served, &env, &earlier.signed(&key_a()), "403");
    // An Archive that lists none answers none, and makes no key.
    drop(served);
    env.sh("sed -i '/^audit/d' B/archive.ibi; rm -r B/audit");
    let served = serve(&env, "B");
    refused(&served, &env, &request(&env, items).signed(&key_a()), "404");
    served.prints(
        &env,
        "status $U/audit-key; ls B | grep -c audit || true",
        "404\n0",
    );
}

/// Lists the Archive at a URL in the other's `archive.ibi`.
fn list(env: &TestEnv, store: &str, url: &str) {
    env.sh(&format!(
        "sed -i 's,^audit {{[^ ]*,audit {{{url},' {store}/archive.ibi"
    ));
}

/// Changes a byte of a file, so that neither its size nor its time shows it.
const FLIP: &str = r#"flip() { touch -r "$1" time; printf X | dd of="$1" conv=notrunc status=none; touch -r time "$1"; }
known() { ibifs copies $1 $2 --json | jq -r '[.copies[] | "\(.kind) \(.outcome)"] | join(", ")'; }
one=$(head -n 1 items)
# What an audit has found.
words() { cut -d: -f1 said | cut -d, -f1 | sort | uniq -c | tr -s ' ' | paste -sd,; }
"#;

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{FLIP}\n{script}"), expected);
}

#[test]
fn two_archives_compare_their_items() {
    let env = pair(40);
    let (a, b) = (serve(&env, "A"), serve(&env, "B"));
    list(&env, "A", &b.url);
    list(&env, "B", &a.url);
    env.sh("ibifs scrub B > said");
    let (to_b, to_a) = (
        format!("ibifs audit A --with {}", b.url),
        format!("ibifs audit B --with {}", a.url),
    );
    prints(
        &env,
        &format!(
            "{to_b} | sed 's/, [0-9]* bytes//'; known A $one; {to_a} | cut -d, -f1; known B $one"
        ),
        "40 items compared, 80 files: 0 files mended, 0 left to see to\narchive good, archive good\n\
         40 items compared\narchive good, archive good",
    );
    // A file of the copy is not what it was: its own Archive mends it, and the other one learns of it.
    prints(
        &env,
        &format!(
            "f=col/$one/doc/file; flip B/$f; cp B/$f bad; ! {to_b} > said; words; grep -c \"{}/$f\" said; known A $one
             {to_a} > said; words; cmp A/$f B/$f; cmp bad B/damaged/$one/doc/file; known B $one
             {to_b} > said; known A $one",
            b.url
        ),
        " 1 40 items compared, 1 differs\n1\narchive good, archive bad\n 1 40 items compared, 1 mended\n\
         archive good, archive good\narchive good, archive good",
    );
    // An original only where that is wanted.
    prints(
        &env,
        &format!(
            "f=col/$one/doc/file; flip A/$f; cp A/$f bad; ! {to_b} > said; sed 's/.*: //' said; cmp A/$f bad
             echo 'repair {{original yes}}' >> A/archive.ibi; {to_b} > said; words; cmp A/$f B/$f"
        ),
        "it is an original; mend it with 'ibifs repair', or let audits do so with 'repair {original yes}' in archive.ibi\n\
         0 files mended, 1 left to see to\n 1 40 items compared, 1 mended",
    );
    // Where both are damaged nothing is overwritten.
    prints(
        &env,
        &format!(
            "f=col/$one/doc/more; flip A/$f; printf Y > y; touch -r B/$f time; dd if=y of=B/$f conv=notrunc status=none; touch -r time B/$f
             ! {to_b} > said; words; ! {to_a} > said; words; cat A/$f B/$f"
        ),
        " 1 40 items compared, 1 no-copy\n 1 40 items compared, 1 no-copy\nXore\nYore",
    );
}

#[test]
fn an_archive_that_is_not_listed_is_not_asked() {
    let env = pair(1);
    let b = serve(&env, "B");
    prints(&env, "ibifs audit A --key", &key_a().verifier().to_string());
    env.complains(
        &format!("ibifs audit A --with {}", b.url),
        "archive.ibi does not list 'http://",
    );
    list(&env, "A", &b.url);
    env.sh("sed -i '/^audit/d' B/archive.ibi");
    drop(b);
    let b = serve(&env, "B");
    list(&env, "A", &b.url);
    env.complains(
        &format!("ibifs audit A --with {}", b.url),
        "status 404: this Archive is audited by no other",
    );
    // Another key under the same name.
    env.sh(&format!(
        "echo 'audit {{http://127.0.0.1:1 {}}}' >> B/archive.ibi",
        key("archive-a.example.org", 5).verifier()
    ));
    drop(b);
    let b = serve(&env, "B");
    list(&env, "A", &b.url);
    env.complains(
        &format!("ibifs audit A --with {}", b.url),
        "status 403: no Archive that 'audit' in archive.ibi lists has this key",
    );
    prints(&env, "known A $one", "archive good, archive good");
}

/// The body of a request; None if it does not come.
fn body_from(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(String::from_utf8(body).expect("a text"))
}

/// An Archive with the key of B that answers as the test says, until the process ends. Returns its URL.
fn liar(answer: impl Fn(&AuditRequest, &mut dyn Write) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let Some(text) = body_from(&stream) else {
                continue;
            };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            if let Ok(request) = AuditRequest::open(&text, &[key_a().verifier().clone()]) {
                answer(&request, &mut stream);
            }
        }
    });
    url
}

fn head_for(request: &AuditRequest) -> AnswerHead {
    let service = Ibi::parse("example.net/archive-b/2026/01.01.00.00").expect("a name");
    AnswerHead {
        challenge: Challenge {
            parties: request.parties.clone(),
            nonces: (request.nonce, Digest([8; 32])),
        },
        said: SaidOfItself {
            service: service.into(),
            place: Vec::new(),
        },
    }
}

/// A signed answer, of which the digests of the files of each item are those that `kept` returns, and `role` sends.
fn lie(
    held: &[Ibi],
    request: &AuditRequest,
    (key, role): (&SignerKey, Role),
    kept: impl Fn(&Challenge, &Ibi) -> SentFiles,
) -> String {
    let head = head_for(request);
    let mut text = head.to_string();
    for item in &request.items {
        if !held.contains(item) {
            text += &AnswerLine::Item(item.clone(), ItemAnswer::Missing).to_string();
            continue;
        }
        let kept = kept(&head.challenge, item);
        for (path, digest) in kept.iter().filter(|_| request.wants_files) {
            let sent = head.challenge.of_file(role, digest);
            text += &AnswerLine::File(path.clone(), sent).to_string();
        }
        let digest = ItemAnswer::Read(head.challenge.of_item(role, item, &kept));
        text += &AnswerLine::Item(item.clone(), digest).to_string();
    }
    text += &AnswerLine::End(true).to_string();
    text.clone() + &AuditAnswer::signature(&text, key)
}

/// The files of an item as they are, with the digests of what `before` returns and the content.
fn files_of(item: &Ibi, before: impl Fn(&[u8], u64) -> Vec<u8>) -> SentFiles {
    let content = format!("{item}\n");
    let files = [("doc/file", &*content), ("doc/more", "more\n")];
    let files = files.map(|(path, content)| {
        let before = before(path.as_bytes(), content.len() as u64);
        let hasher = Sha256::new_with_prefix(before).chain_update(content);
        (path.as_bytes().to_vec(), Digest(hasher.finalize().into()))
    });
    files.into()
}

#[test]
fn an_archive_that_lies_is_found_out() {
    let env = pair(2);
    let audit = |url: &str| {
        list(&env, "A", url);
        env.sh(&format!(
            "{FLIP}\n! ibifs audit A --with {url} > said 2> why; words
             sed 's,http://[0-9.:]*,URL,' why; for i in $(< items); do ibifs copies A $i --json; done |
                jq -r '.copies[] | select(.holder | endswith(\"archive-b/2026/01.01.00.00\")) | .outcome' | sort | uniq -c | tr -s ' ' | paste -sd,"
        ))
    };
    // What is compared first: an answer that is right.
    let held = items(&env);
    let url = liar(move |request, to| {
        let right = |challenge: &Challenge, item: &Ibi| {
            files_of(item, |path, size| challenge.before(item, path, size))
        };
        let _ = to.write_all(lie(&held, request, (&key_b(), Role::Answerer), right).as_bytes());
    });
    list(&env, "A", &url);
    env.prints(
        &format!("ibifs audit A --with {url} | cut -d, -f1"),
        "2 items compared",
    );
    let found = " 1 2 items compared, 4 differs\n 2 bad";
    // It knows the recorded digests.
    let held = items(&env);
    let recorded = liar(move |request, to| {
        let recorded = |_: &Challenge, item: &Ibi| files_of(item, |_, _| Vec::new());
        let _ = to.write_all(lie(&held, request, (&key_b(), Role::Answerer), recorded).as_bytes());
    });
    assert_eq!(audit(&recorded), found);
    // It has them from a third Archive, which it asks itself.
    let held = items(&env);
    let proxy = liar(move |request, to| {
        let proxied = |_: &Challenge, item: &Ibi| {
            let mut other = head_for(request).challenge;
            other.parties.asker = other.parties.answerer.clone();
            other.parties.answerer = key("archive-c.example.com", 3).verifier().clone();
            files_of(item, |path, size| other.before(item, path, size))
        };
        let _ = to.write_all(lie(&held, request, (&key_b(), Role::Answerer), proxied).as_bytes());
    });
    assert_eq!(audit(&proxy), found);
    // It sends what the other side sends.
    let held = items(&env);
    let echo = liar(move |request, to| {
        let right = |challenge: &Challenge, item: &Ibi| {
            files_of(item, |path, size| challenge.before(item, path, size))
        };
        let _ = to.write_all(lie(&held, request, (&key_b(), Role::Asker), right).as_bytes());
    });
    assert_eq!(audit(&echo), found);
    // It says that it has what it has not.
    let held = items(&env);
    let boast = liar(move |request, to| {
        let nothing = |_: &Challenge, _: &Ibi| SentFiles::new();
        let _ = to.write_all(lie(&held, request, (&key_b(), Role::Answerer), nothing).as_bytes());
    });
    assert_eq!(audit(&boast), found);
}

#[test]
fn an_answer_that_is_none_ends_the_audit() {
    let env = pair(2);
    let ends = |url: &str, why: &str| {
        list(&env, "A", url);
        env.complains(&format!("ibifs audit A --with {url}"), why);
        prints(&env, "known A $one", "archive good, archive good");
    };
    let right = |challenge: &Challenge, item: &Ibi| {
        files_of(item, |path, size| challenge.before(item, path, size))
    };
    let held = items(&env);
    let forged = liar(move |request, to| {
        let _ = to.write_all(
            lie(
                &held,
                request,
                (&key("archive-b.example.net", 6), Role::Answerer),
                right,
            )
            .as_bytes(),
        );
    });
    ends(&forged, "not signed by the key of 'archive-b.example.net'");
    let (first, held) = (Mutex::new(None), items(&env));
    let replayed = liar(move |request, to| {
        let mut first = first.lock().expect("a lock");
        let text =
            first.get_or_insert_with(|| lie(&held, request, (&key_b(), Role::Answerer), right));
        let _ = to.write_all(text.as_bytes());
    });
    ends(&replayed, "it belongs to another request");
    let other = liar(move |request, to| {
        let mut request = request.clone();
        request.items = vec![Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("a name")];
        let _ = to
            .write_all(lie(&request.items, &request, (&key_b(), Role::Answerer), right).as_bytes());
    });
    ends(&other, "it is about other items than were asked for");
    let endless = liar(|request, to| {
        let _ = to.write_all(head_for(request).to_string().as_bytes());
        while to.write_all(b"reading\n").is_ok() {}
    });
    ends(&endless, "the answer has more than");
    let cut = liar(|request, to| {
        let _ = to.write_all(head_for(request).to_string().as_bytes());
    });
    ends(&cut, "expected text before an empty line");
    let silent = liar(|request, to| {
        let _ = to.write_all(head_for(request).to_string().as_bytes());
        std::thread::park();
    });
    ends(&silent, "no answer in 30s");
}

/// An Archive that is busy is asked again after a pause.
#[test]
fn an_archive_that_is_busy_is_asked_again() {
    let env = pair(2);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for (stream, status) in listener.incoming().zip(["503 Busy", "404 Not Found"]) {
            let mut stream = stream.expect("a connection");
            let _ = body_from(&stream);
            let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
        }
    });
    list(&env, "A", &url);
    env.complains(&format!("ibifs audit A --with {url}"), "status 404");
}

#[test]
fn items_that_are_not_public_are_not_named_to_others() {
    let env = pair(2);
    env.sh("chmod 700 A/col/$(head -n 1 items)");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let other = liar(move |request, to| {
        let mut noted = noted.lock().expect("a lock");
        noted.extend(request.items.iter().map(Ibi::to_string));
        let nothing = |_: &Challenge, _: &Ibi| SentFiles::new();
        let _ = to.write_all(lie(&[], request, (&key_b(), Role::Answerer), nothing).as_bytes());
    });
    list(&env, "A", &other);
    env.prints(
        &format!("ibifs audit A --with {other} | cut -d, -f1"),
        "0 items compared",
    );
    let (items, seen) = (items(&env), seen.lock().expect("a lock"));
    let is_named = [0, 1].map(|number: usize| seen.contains(&items[number].to_string()));
    assert_eq!(is_named, [false, true], "{seen:?}");
}

/// The known copies of an item, and the damaged files of it.
const LEARNED: &str = r#"
learned() { ibifs copies $1 $2 --json | jq -c '[.copies[1:][] | .holder, .place, .outcome]' | sed -E 's,/20[^"]*,,; s,http://[0-9.:]*,URL,'; }
damaged() { ibifs show --store $1 $2 --json | jq -c '[.damaged[].path]'; }
"#;

/// The service that answers has given up its rights, and its side learns of the copy all the same, and of damage that was read.
#[test]
fn the_archive_that_is_asked_learns_as_well() {
    let env = pair(2);
    let b = serve(&env, "B");
    list(&env, "A", &b.url);
    let audit = format!("ibifs audit A --with {}", b.url);
    let sh = |script: &str, expected: &str| {
        prints(
            &env,
            &format!("{LEARNED}\naudit() {{ {audit} > said || echo \"status $?\"; }}\n{script}"),
            expected,
        );
    };
    env.sh("echo 'history yes' >> B/archive.ibi; echo 'place {br sp}' >> A/archive.ibi; ibifs scrub B > said; rm B/fixity/col/*/*/*/*/copies");
    sh(
        "learned B $one; audit; learned B $one; learned B $(tail -n 1 items); find B/audit -name 'learned-*' -size +0",
        "[\"example.org/archive-a\",[],null]\n[\"example.org/archive-a\",[\"br\",\"sp\"],\"good\"]\n[\"example.org/archive-a\",[\"br\",\"sp\"],\"good\"]",
    );
    // A file here is not what was recorded of it: nothing is learned of the copy, and the file is marked.
    sh("flip B/col/$one/doc/file; audit; ibifs status B --json | jq -c '[.[0].damaged[].files]'; damaged B $one; learned B $one
        ibifs history B --type damaged --json | jq -r '.note'; ibifs repair B $one --from A > said; damaged B $one; audit",
       "status 1\n[1]\n[\"doc/file\"]\n[\"example.org/archive-a\",[\"br\",\"sp\"],\"good\"]\ndamaged doc/file\n[]");
    // A file that was removed is not marked, one that is lost is: the directory has not changed since the item was scrubbed.
    sh("cat > B/audit/learned-* <<< \"from 2026-01-01T00:00:00Z -
damaged $one - doc/file
damaged $one ! doc/more
damaged $one - doc/none\"; rm B/col/$one/doc/more; audit; ibifs copies B > said; damaged B $one; touch -d '1 hour' B/fixity/col/$one/written.txt; audit; ibifs copies B > said; damaged B $one
        ibifs history B --type damaged --json | jq -r '.note'; ibifs repair B $one --from A > said; damaged B $one; cat B/col/$one/doc/more; audit",
       "status 1\n[]\nstatus 1\n[\"doc/more\"]\ndamaged doc/file\nlost doc/more\n[]\nmore");
    // The copy there is another one, until it is mended. What was mended above was compared with it, too.
    sh("flip A/col/$one/doc/file; audit; learned B $one; cp -p B/col/$one/doc/file A/col/$one/doc/file; audit; learned B $one
        ibifs history --store B $one --json | jq -r 'select(.event == \"differs\" or .event == \"audited\") | .event'",
       "status 1\n[\"example.org/archive-a\",[\"br\",\"sp\"],\"bad\"]\n[\"example.org/archive-a\",[\"br\",\"sp\"],\"good\"]\naudited\ndiffers\naudited\ndiffers\naudited");
    // A mount takes it in without a command.
    sh(
        "rm B/fixity/col/$one/copies; audit; find B/audit -name 'learned-*' -size +0 | wc -l; mkdir M; ibifs mount B M
         waits no test -s B/audit/learned-*; ibifs umount M
         find B/audit -name 'learned-*' -size +0; grep -c 'holder example.org/archive-a/.* outcome good' B/fixity/col/$one/copies",
        "1\n1",
    );
    env.prints("grep -vc 'has other content than is here' log || true", "0");
}

/// A listed Archive that lies, asks all the time or sends what it has sent before fills neither the ledger nor the disk; nothing
/// is taken in that the service could not know.
#[test]
fn what_is_learned_is_bounded() {
    let env = pair(2);
    let b = serve(&env, "B");
    let items = items(&env);
    // A request of A for the first item, and the proof that belongs to it.
    let proof = |service: &str| {
        let asked = request(&env, items[..1].to_vec());
        let (status, text) = post(&b, &env, &asked.signed(&key_a()));
        assert_eq!(status, "200", "{text}");
        let answer = AuditAnswer::open(&text, &asked).expect("an answer");
        let challenge = answer.head.challenge;
        let kept = files_of(&items[0], |path, size| {
            challenge.before(&items[0], path, size)
        });
        let digest = challenge.of_item(Role::Asker, &items[0], &kept);
        let proof = AuditProof {
            challenge,
            said: said_by_a(service),
            items: vec![(items[0].clone(), digest), (items[1].clone(), digest)],
        };
        proof.signed(&key_a())
    };
    env.sh("ibifs scrub B > said; rm B/fixity/col/*/*/*/*/copies");
    for (service, holder) in [
        (
            "example.org/archive-a/2020/01.01.00.00",
            "example.org/archive-a",
        ),
        // A service of another Archive is not taken for it.
        ("example.com/archive-c/2026/01.01.00.00", "URL"),
        (
            "example.org/archive-a/2020/01.01.00.01",
            "example.org/archive-a",
        ),
    ] {
        let text = proof(service);
        let (status, said) = post(&b, &env, &text);
        assert_eq!((&*status, &*said), ("200", "same 1 other 1\n"));
        refused(&b, &env, &text, "409");
        // The item of the archive's original is known by its sidecar as well.
        let shown = env.sh(&format!("{FLIP}{LEARNED}\nlearned B $one | grep -o '\"{holder}\",\\[\"br\",\"sp\"\\],\"good\"' | wc -l; wc -l < B/fixity/col/$one/copies; test ! -e B/fixity/col/$(tail -n 1 items)/copies"));
        assert_eq!(shown.trim_end(), "1\n1", "{service}");
    }
    // What is not public any more is not noted, nor is what is noted already.
    let text = proof("example.org/archive-a/2020/01.01.00.00");
    post(&b, &env, &text);
    env.sh("chmod 700 B/col/$(head -n 1 items); cp B/audit/learned-* kept; cp B/fixity/col/$(head -n 1 items)/copies before; ibifs copies B > said; cmp before B/fixity/col/$(head -n 1 items)/copies
        chmod 755 B/col/$(head -n 1 items); test ! -s B/audit/learned-*; cat kept > B/audit/learned-*; ibifs copies B > said; cp B/fixity/col/$(head -n 1 items)/copies once
        cat kept > B/audit/learned-*; ibifs copies B > said; cmp once B/fixity/col/$(head -n 1 items)/copies; ! cmp -s before once");
    // The file is full; it is another user's, or has another name.
    env.sh("truncate -s 4194304 B/audit/learned-*");
    let text = proof("example.org/archive-a/2020/01.01.00.00");
    assert_eq!(post(&b, &env, &text).0, "200");
    env.prints(
        "stat -c %s B/audit/learned-*; ibifs copies B > said; stat -c %s B/audit/learned-*",
        "4194304\n0",
    );
    env.sh("cat kept > B/audit/learned-*; ln B/audit/learned-* other; rm B/fixity/col/$(head -n 1 items)/copies; ibifs copies B > said 2> why; grep -q 'not permitted' why; test -s other
        test ! -e B/fixity/col/$(head -n 1 items)/copies; rm other; chown 60001 B/audit/learned-*; ibifs copies B > said 2> why; grep -q 'not permitted' why
        chown 0 B/audit/learned-*; sed -i '/^audit/d' B/archive.ibi; ibifs copies B > said; test ! -e B/fixity/col/$(head -n 1 items)/copies");
}

/// Prints the items that each side knows to be gone, its status and its history of that, and the files of an item.
const GONE: &str = r#"
gone() { ibifs copies $1 $2 --json | jq -c '[.copies[1:][] | .gone | select(.) | .what, .reason]'; }
state() { ibifs status $1 --json | jq -c '[.[0].originals_gone[] | .gone.what]'; }
told() { ibifs history $1 --json | jq -r 'select(.event == "told") | "\(.earlier.event) \(.earlier.note) \(.by[0])"' | sed 's,/20.*,,'; }
item() { sed -n ${1}p items; }
files() { find $1/col/*/*/20* -type f | sort | xargs sha256sum; }
"#;

/// An Archive learns, by an audit from either side, what the other one has withdrawn and removed, and decides itself. Of what the
/// public did not see nothing is said.
#[test]
fn withdrawals_and_removals_reach_the_archives_of_copies() {
    for asks_a in [true, false] {
        let env = pair(4);
        let served = serve(&env, if asks_a { "B" } else { "A" });
        let (here, there) = if asks_a { ("A", "B") } else { ("B", "A") };
        list(&env, here, &served.url);
        let audit = format!("ibifs audit {here} --with {}", served.url);
        let sh =
            |script: &str, expected: &str| prints(&env, &format!("{GONE}\n{script}"), expected);
        sh(
            "echo 'history yes' >> B/archive.ibi; files B > before; chmod 700 A/col/$(item 3); rm -r A/col/$(item 3)/doc
             ibifs withdraw --store A $(item 1) --reason 'a wrong {table}' 2>&1 | sed 's/, in .*;/;/'
             ibifs remove --store A $(item 2) --reason 'a duplicate' 2>&1 | sed '/WARN/d; s/, in .*;/;/'
             ibifs remove --store A $(item 3) 2>&1 | sed '/WARN/d'",
            "ibifs: 1 known copy; its Archive learns of it at the next 'ibifs audit' of the two, and decides\n\
             ibifs: 1 known copy; its Archive learns of it at the next 'ibifs audit' of the two, and decides",
        );
        let said = if asks_a {
            "1 item compared"
        } else {
            "removed: a duplicate\nwithdrawn: a wrong {table}\n2 items compared"
        };
        // Removed as a draft, the third one is missing, and that is all.
        sh(
            &format!(
                "{audit} > said || true; sed -nE '/^gone/d; s/^(withdrawn|removed): .* for this reason: /\\1: /p' said | sort; tail -n 1 said | cut -d, -f1"
            ),
            said,
        );
        sh(
            "gone B $(item 1); gone B $(item 2); gone B $(item 3); gone B $(item 4); state B; told B; files B | cmp - before; ibifs fsck B | tail -n 1
             ibifs copies B $(item 2) | grep -c 'removed there 20.*Z: a duplicate'; ibifs status B | grep -c '^gone     2 copies whose originals'",
            "[\"withdrawn\",\"a wrong {table}\"]\n[\"removed\",\"a duplicate\"]\n[]\n[]\n[\"withdrawn\",\"removed\"]\n\
             withdrawn a wrong {table} example.org/archive-a\nremoved a duplicate example.org/archive-a\n5 items, 0 findings\n1\n1",
        );
        // It is told once, and what is decided, or is shown again, is over.
        sh(
            &format!(
                "{audit} > said || true; told B | wc -l; ibifs remove --store B $(item 2) 2> /dev/null; state B; ibifs restore --store A $(item 1); {audit} > said || true
                 gone B $(item 1); state B; (cd B/fixity/gone; find . -type f) | sed s,./col/,, | diff - <(item 2)"
            ),
            "2\n[\"withdrawn\"]\n[]\n[]",
        );
        drop(served);
        let _ = there;
    }
}

/// An audit of named items tells what was withdrawn or removed of them, and of no others.
#[test]
fn named_items_that_are_gone_are_told() {
    let env = pair(5);
    let b = serve(&env, "B");
    list(&env, "A", &b.url);
    let url = &b.url;
    let sh = |script: &str, expected: &str| prints(&env, &format!("{GONE}\n{script}"), expected);
    sh(
        &format!(
            "echo 'history yes' >> B/archive.ibi; ibifs withdraw --store A $(item 1) --reason first 2> said
             for n in 2 3 4; do ibifs remove --store A $(item $n) --reason $n 2> said; done
             ibifs audit A --with {url} $(item 1) $(item 2) $(item 5) | tail -n 1 | cut -d, -f1; for n in 1 2 3 4 5; do gone B $(item $n); done
             ibifs audit A --with {url} $(item 2) | tail -n 1 | cut -d, -f1; ibifs audit A --with B $(item 3) | tail -n 1 | cut -d, -f1; told B"
        ),
        "2 items compared\n[\"withdrawn\",\"first\"]\n[\"removed\",\"2\"]\n[]\n[]\n[]\n\
         0 items compared\n0 items compared\nwithdrawn first example.org/archive-a\nremoved 2 example.org/archive-a\nremoved 3 example.org/archive-a",
    );
}

/// The word of a listed Archive that items are gone counts only of those that it is known to have, and fills nothing.
#[test]
fn what_is_said_to_be_gone_is_bounded() {
    let env = pair(2);
    env.sh("ibifs mint B | grep /20 > own; echo x > B/col/$(< own)/doc/file; echo 'history yes' >> B/archive.ibi; ibifs scrub B > said");
    let b = serve(&env, "B");
    let items = items(&env);
    let own = Ibi::parse(env.sh("cat own").trim()).expect("a name");
    let at = |text: &str| ibifs::ibi::Timestamp::parse_rfc3339(text).expect("a time");
    let past = at("2026-01-01T00:00:00Z");
    let tell = |gone: Vec<(Ibi, Gone)>| {
        let mut asked = request(&env, items[1..].to_vec());
        asked.gone = gone;
        let text = asked.signed(&key_a());
        (post(&b, &env, &text).0, text)
    };
    let sh = |script: &str, expected: &str| prints(&env, &format!("{GONE}\n{script}"), expected);
    // Of an original of B of which A has nothing, of what nobody has, and of what is to come.
    let unknown = Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("a name");
    let removed = Gone::new(true, &past, "mine");
    let (status, text) = tell(vec![
        (own, removed.clone()),
        (unknown, removed.clone()),
        (
            items[0].clone(),
            Gone::new(true, &at("2999-01-01T00:00:00Z"), "later"),
        ),
    ]);
    assert_eq!(status, "200");
    sh(
        "gone B $(< own); gone B $(item 1); state B; told B; test ! -e B/fixity/gone",
        "[]\n[]\n[]",
    );
    refused(&b, &env, &text, "403");
    assert_eq!(tell(vec![(items[0].clone(), removed.clone()); 51]).0, "400");
    // What there is no room for was not told.
    env.sh("truncate -s 4194304 B/audit/learned-*");
    assert_eq!(tell(vec![(items[0].clone(), removed.clone())]).0, "503");
    sh("gone B $(item 1); stat -c %s B/audit/learned-*", "[]\n0");
    // It says another thing each time: one line, and a limited number of events.
    for number in 0..60 {
        let gone = Gone::new(
            number % 2 == 0,
            &past,
            &format!("{number} {}", "x".repeat(300)),
        );
        assert_eq!(tell(vec![(items[0].clone(), gone); 50]).0, "200");
    }
    sh(
        "gone B $(item 1) | cut -c1-19; state B; wc -l < B/fixity/col/$(item 1)/copies; told B | wc -l; find B/fixity/gone -type f | wc -l",
        "[\"withdrawn\",\"59 xx\n[\"withdrawn\"]\n1\n20\n1",
    );
}
