//! Signed lists of peers, and the addresses and keys by which services and databases are known.

use ibifs::formats::audit::{AuditAnswer, AuditProof, AuditRequest, Parties};
use ibifs::formats::base_url::BaseUrl;
use ibifs::formats::federation::{PublicKey, SignedList, SigningKey, signature_line};
use ibifs::formats::fixity::Digest;
use ibifs::formats::name_spaces::NameSpaces;
use ibifs::formats::tlog::note::{KeyKind, SignerKey};
use ibifs::ibi::Ibi;
use ibifs::outside::web::texts::redirection;
use ibifs::sql::index_url::{IndexUrl, without_password};

use super::{plain, sentence, text, two_lines};

/// The first line is an address or a key, the rest what a peer has signed, or a table of name spaces.
pub fn check(data: &[u8]) {
    let (line, rest) = two_lines(data);
    let key = SigningKey::of_seed(&[7; 32]).expect("a key");
    let sent = [rest, signature_line(rest, &key).as_bytes()].concat();
    match SignedList::verified(&sent, &key.public()) {
        Ok(list) => {
            let again = SignedList::verified(list.signed(&key).as_bytes(), &key.public());
            assert_eq!(again.as_ref(), Ok(&list));
        }
        Err(error) => sentence(&error),
    }
    audits(rest);
    // Nobody else has this key.
    assert!(SignedList::verified(rest, &key.public()).is_err());
    match NameSpaces::parse(rest) {
        Ok(table) => {
            let again = NameSpaces::parse(table.to_text().as_bytes());
            assert_eq!(again, Ok(table));
        }
        Err(error) => plain(&error),
    }
    let Some(line) = text(line) else {
        return;
    };
    match PublicKey::parse(line) {
        Ok(key) => assert_eq!(PublicKey::parse(&key.to_string()), Ok(key)),
        Err(error) => sentence(&error),
    }
    match BaseUrl::parse(line) {
        Ok(url) => service(&url, rest),
        Err(error) => sentence(&error),
    }
    match BaseUrl::parse_short(line) {
        Ok(url) => assert_eq!(BaseUrl::parse_short(&url.short()), Ok(url)),
        Err(error) => plain(&error),
    }
    match IndexUrl::parse(line) {
        Ok(url) => {
            assert_eq!(without_password(url.as_str()), line);
            assert!(line.contains(url.place()));
        }
        Err(error) => sentence(&error),
    }
}

/// An audit that is read is written as it was, whatever it says.
fn audits(rest: &[u8]) {
    let Some(rest) = text(rest) else {
        return;
    };
    let asker = SignerKey::new("a.example.org", KeyKind::Ed25519, &[1; 32]).expect("a key");
    let answerer = SignerKey::new("b.example.org", KeyKind::Ed25519, &[2; 32]).expect("a key");
    let known = [asker.verifier().clone()];
    let signed = |key: &SignerKey| format!("{rest}\n{}", key.signature_of(rest));
    match AuditRequest::open(&signed(&asker), &known) {
        Ok(request) => assert_eq!(request.to_string(), rest),
        Err(error) => sentence(&error),
    }
    match AuditProof::open(&signed(&asker), &known) {
        Ok(proof) => assert_eq!(AuditProof::open(&proof.signed(&asker), &known), Ok(proof)),
        Err(error) => sentence(&error),
    }
    let request = AuditRequest {
        parties: Parties {
            asker: asker.verifier().clone(),
            answerer: answerer.verifier().clone(),
        },
        time: 1,
        nonce: Digest([3; 32]),
        seconds: 1,
        wants_files: true,
        gone: Vec::new(),
        items: vec![Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an identifier")],
    };
    match AuditAnswer::open(&signed(&answerer), &request) {
        Ok(answer) => assert!(answer.items.len() <= 1),
        Err(error) => sentence(&error),
    }
}

/// A URL reads back, and a redirection from it stays with the web, and with TLS.
fn service(url: &BaseUrl, location: &[u8]) {
    let text = url.to_string();
    assert_eq!(BaseUrl::parse(&text).as_ref(), Ok(url));
    assert!(url.is_same_place(url) && text.ends_with(url.prefix()));
    assert_eq!(url.below(&format!("{}/x", url.prefix())), Some("/x"));
    if let Some(target) = redirection(&text, location) {
        let is_tls = text.starts_with("https://");
        assert!(target.starts_with("https://") || !is_tls && target.starts_with("http://"));
        assert!(
            target.bytes().all(|byte| byte > b' ' && byte != 127),
            "{target}"
        );
    }
}
