//! Answers to any request: well-formed XML, one winner of many at once, and faults that are not refusals.

use super::*;

#[test]
fn of_many_at_once_one_is_first() {
    let resolver = TestResolver::new();
    let registries: Vec<Registry> = (0..2).map(|_| resolver.place.open()).collect();
    let now = resolver.now();
    let answer = |registry: &Registry, text: &str| {
        let fields = FormFields::parse(text).expect("fields");
        let lookup = |_: &str| Ok(Vec::new());
        let requester = Requester {
            address: CLIENT,
            client: CLIENT,
            lookup: &lookup,
        };
        registry.answer(&fields, requester, &now)
    };
    let all = |texts: &(dyn Fn(usize) -> String + Sync)| -> Vec<RegistrationReply> {
        std::thread::scope(|scope| {
            let asked = (0..6).map(|number| {
                let registry = &registries[number % 2];
                scope.spawn(move || answer(registry, &texts(number)))
            });
            let asked: Vec<_> = asked.collect();
            let replies = asked
                .into_iter()
                .map(|asked| asked.join().expect("no panic"));
            replies.collect()
        })
    };
    let replies = all(&|number| {
        format!("verb=RegisterActor&{HERMES}&eMailAddress=a@b&password=secret{number}")
    });
    let done = |replies: &[RegistrationReply]| {
        assert!(
            replies
                .iter()
                .all(|reply| reply.status != ReplyStatus::Failed)
        );
        replies
            .iter()
            .filter(|reply| reply.status == ReplyStatus::Done)
            .count()
    };
    assert_eq!(done(&replies), 1);
    let actors = all(&|number| {
        format!(
            "verb=RegisterActor&computerName=c{number}&domainName=dpi.inpe.br&port=80&eMailAddress=a@b&password=12xY3z"
        )
    });
    assert_eq!(done(&actors), 6);
    let ids: Vec<String> = actors
        .iter()
        .map(|reply| inner(&reply.xml).replace("actorID ", ""))
        .collect();
    let replies = all(&|number| document(&ids[number], &given("originalDocument=yes")));
    assert_eq!(done(&replies), 1);
    let minted = all(&|number| {
        document(
            &ids[0],
            &format!("documentURL=http://c0.dpi.inpe.br/{number}"),
        )
    });
    assert_eq!(done(&minted), 6);
    let minted: std::collections::BTreeSet<String> =
        minted.into_iter().map(|reply| reply.xml).collect();
    assert_eq!(minted.len(), 6);
}

#[test]
fn what_the_resolver_cannot_do_is_no_refusal_and_discloses_nothing() {
    let resolver = TestResolver::with_actors();
    for table in ["metadata", "registration"] {
        let connection = resolver.registry.lock();
        let drop = format!("DROP TABLE {table}");
        connection.execute(&drop, &[]).expect("dropped");
    }
    let reply = resolver.ask(&document(HERMES_ID, ""));
    assert_eq!(reply.status, ReplyStatus::Failed);
    assert_eq!(
        inner(&reply.xml),
        "errorMessage the resolver cannot do this now; try again later"
    );
    assert!(reply.xml.contains("<answer verb=\"RegisterDocument\">"));
}

#[track_caller]
fn well_formed(xml: &str) {
    let is_written = |c: char| c >= ' ' || c == '\n';
    assert!(
        xml.chars().all(|c| is_written(c) && c != '\u{ffff}'),
        "{xml:?}"
    );
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut depth = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::GeneralRef(found)) => {
                assert!(["lt", "gt", "amp", "quot", "apos"].contains(&&*found));
            }
            Ok(Event::Text(_) | Event::Decl(_)) => {}
            other => panic!("{other:?} in {xml}"),
        }
    }
    assert_eq!(depth, 0, "{xml}");
}

#[test]
fn no_fields_make_it_panic_or_answer_what_is_no_xml() {
    let resolver = TestResolver::with_actors();
    let names: Vec<&str> = Verb::ALL
        .iter()
        .flat_map(|verb| verb.parameters().iter().chain(verb.group()).copied())
        .chain(["verb", "", "x", "%00"])
        .collect();
    let values: Vec<&str> = Verb::ALL
        .iter()
        .map(|verb| verb.name())
        .chain([
            HERMES_ID,
            DOCUMENT,
            "12xY3z",
            "yes",
            "80",
            "",
            "%00%01",
            "%EF%BF%BF",
            "%F0%9F%98%80",
            "]]>%26%3C%22'",
            "http://hermes.dpi.inpe.br/",
            "http://%5B::1",
            "2008-07-17T17:22:06Z",
            "%C3%A9+03:00",
            "////",
            "a/b",
            "99999999999999999999",
            "-",
            "2009/99.99.99.99",
            "a@b",
            "pt-BR",
            "hermes",
            "dpi.inpe.br",
        ])
        .collect();
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let good = [
        document(HERMES_ID, &given("")),
        document(
            HERMES_ID,
            "documentURL=http://hermes.dpi.inpe.br/b.pdf&metadataURL=http://hermes.dpi.inpe.br/&metadataLastUpdate=2008-07-17T17:22:06Z",
        ),
        format!(
            "verb=ChangeActor&{}&documentID={DOCUMENT}&newActorID={APOLLO_ID}",
            who(HERMES_ID)
        ),
        format!(
            "verb=DisplayIDRegistration&{}&documentID={DOCUMENT}",
            who(APOLLO_ID)
        ),
    ];
    let mut statuses = Vec::new();
    for round in 0..5000 {
        // A password check is slow, so few of these requests have a valid password.
        let text: Vec<String> = match round % 50 {
            0 => {
                let pairs = good[random(good.len())].split('&').map(str::to_owned);
                let mut pairs: Vec<String> = pairs.collect();
                let at = random(pairs.len());
                let value = values[random(values.len())];
                let name = pairs[at].split('=').next().unwrap_or_default();
                if random(2) == 0 {
                    pairs[at] = format!("{name}={value}");
                }
                pairs
            }
            _ => {
                let verb = Verb::ALL[random(7)];
                let mut pairs = vec![format!("verb={}", verb.name())];
                for _ in 0..random(12) {
                    let name = match random(4) {
                        0 => names[random(names.len())],
                        _ => verb.parameters()[random(verb.parameters().len())],
                    };
                    pairs.push(format!("{name}={}", values[random(values.len())]));
                }
                pairs
            }
        };
        let text = text.join("&");
        let reply = resolver.ask(&text);
        assert_ne!(reply.status, ReplyStatus::Failed, "{text}");
        well_formed(&reply.xml);
        statuses.push(reply.status);
    }
    let done = statuses
        .iter()
        .filter(|status| **status == ReplyStatus::Done);
    assert!(done.count() > 10);
}
