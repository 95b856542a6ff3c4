//! Audits among Archives over HTTP: only listed ones may ask, what they are shown was read now, and an Archive that lies is found
//! out.

use std::collections::BTreeMap;

use ibifs::formats::audit::{
    AuditAnswer, AuditProof, AuditRequest, ItemAnswer, Parties, Role, SentFiles,
};
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
         while read -r item; do echo $item > A/col/$item/doc/file; echo more > A/col/$item/doc/more; done < items
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
        answer.head.service.to_string().contains("archive-b"),
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
        "status $U/audit; status -X PUT -d x $U/audit",
        "404\n405",
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
