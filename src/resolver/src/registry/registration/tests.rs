//! The protocol, verb by verb, with a test clock and test hosts.

mod actors;
mod answers;
mod holdings;
mod identifiers;

use std::cell::RefCell;

use quick_xml::events::Event;

use super::*;
use crate::registry::tests::TestRegistry;
use bounds::DAYS_TO_TAKE_EFFECT;
use ibi::Ibi;
use ibifs_formats::registration::Credentials;

/// 2009-03-17T15:17:00Z, when the actor of the protocol's example was registered.
const NOW: i64 = 1_237_303_020;
const DAY: i64 = 86_400;
const HERMES: &str = "computerName=hermes&domainName=dpi.inpe.br&port=80";
const HERMES_ID: &str = "dpi.inpe.br/hermes@80/2009/03.17.15.17";
const APOLLO_ID: &str = "dpi.inpe.br/apollo@80/2009/03.17.15.17";
const DOCUMENT: &str = "dpi.inpe.br/banon/1998/08.02.08.56";

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A resolver, with its clock and the hosts that were looked up.
struct TestResolver {
    place: TestRegistry,
    registry: Registry,
    clock: i64,
    asked: RefCell<Vec<String>>,
}

impl TestResolver {
    fn new() -> TestResolver {
        let place = TestRegistry::new();
        TestResolver {
            registry: place.open(),
            place,
            clock: NOW,
            asked: RefCell::default(),
        }
    }

    /// A resolver with two actors that have registered no documents.
    fn with_actors() -> TestResolver {
        let resolver = TestResolver::new();
        for (computer, id) in [("hermes", HERMES_ID), ("apollo", APOLLO_ID)] {
            let place = HERMES.replace("hermes", computer);
            assert_eq!(resolver.register(&place, "12xY3z"), id);
        }
        resolver
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix(self.clock, 0)
    }

    fn ask(&self, text: &str) -> RegistrationReply {
        let lookup = |host: &str| -> Result<Vec<IpAddr>, LookupError> {
            self.asked.borrow_mut().push(host.to_owned());
            let addresses: &[&str] = match host {
                "hermes.dpi.inpe.br" => &["10.0.0.1", "fd00::1"],
                "www.dpi.inpe.br" => &["10.0.0.9", "fd00::1"],
                "10.0.0.1" => &["10.0.0.1"],
                "apollo.dpi.inpe.br" => &["10.0.0.2"],
                _ => &[],
            };
            let addresses = addresses
                .iter()
                .map(|text| text.parse().expect("an address"));
            Ok(addresses.collect())
        };
        let fields = FormFields::parse(text).expect("fields");
        let requester = Requester {
            address: CLIENT,
            client: CLIENT,
            lookup: &lookup,
        };
        self.registry.answer(&fields, requester, &self.now())
    }

    #[track_caller]
    fn done(&self, text: &str) -> String {
        let reply = self.ask(text);
        assert_eq!(reply.status, ReplyStatus::Done, "{}", reply.xml);
        inner(&reply.xml)
    }

    #[track_caller]
    fn refused(&self, text: &str, sentence: &str) {
        let reply = self.ask(text);
        assert_eq!(reply.status, ReplyStatus::Refused, "{}", reply.xml);
        let found = inner(&reply.xml);
        let found = found.strip_prefix("errorMessage ").expect("an error");
        assert!(found.contains(sentence), "{found}");
    }

    #[track_caller]
    fn register(&self, place: &str, password: &str) -> String {
        let text = format!(
            "verb=RegisterActor&{place}&eMailAddress=banon@dpi.inpe.br&password={password}"
        );
        let id = self.done(&text);
        id.strip_prefix("actorID ").expect("an actor").to_owned()
    }

    /// Registers a document of an actor: `a.pdf`, or what `more` names.
    #[track_caller]
    fn document(&self, actor: &str, more: &str) -> String {
        let id = self.done(&document(actor, more));
        id.strip_prefix("documentID ")
            .expect("a document")
            .to_owned()
    }

    fn column(&self, select: &str) -> Vec<String> {
        let connection = self.registry.lock();
        connection
            .each(select, &[], |row| row.get(0))
            .expect("texts")
    }
}

/// The element in an answer, and its text.
#[track_caller]
fn inner(xml: &str) -> String {
    let line = xml.lines().nth(2).expect("a third line");
    let (name, rest) = line
        .trim()
        .trim_start_matches('<')
        .split_once('>')
        .expect("an element");
    let text = rest.split("</").next().unwrap_or_default();
    let text = quick_xml::escape::unescape(text).expect("a text");
    format!("{name} {text}")
}

fn who(actor: &str) -> String {
    format!("actorID={actor}&password=12xY3z")
}

fn document(actor: &str, more: &str) -> String {
    let host = actor.split(['/', '@']).nth(1).expect("a computer");
    let own = if more.contains("documentURL=") {
        String::new()
    } else {
        format!("documentURL=http://{host}.dpi.inpe.br/a.pdf&")
    };
    format!(
        "verb=RegisterDocument&{}&{own}documentLastUpdate=2008-07-17T17:22:06-03:00&{more}",
        who(actor)
    )
}

fn given(more: &str) -> String {
    format!("documentID={DOCUMENT}&{more}")
}
