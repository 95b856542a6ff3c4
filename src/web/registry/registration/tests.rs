//! The protocol, verb by verb, with a test clock and test hosts.

use std::cell::RefCell;

use quick_xml::events::Event;

use super::*;
use crate::formats::registration::Credentials;
use crate::web::registry::bounds::DAYS_TO_TAKE_EFFECT;
use crate::web::registry::requester::LookupError;
use crate::web::registry::tests::RegistryDirectory;
use ibi::Ibi;

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
    place: RegistryDirectory,
    registry: Registry,
    clock: i64,
    asked: RefCell<Vec<String>>,
}

impl TestResolver {
    fn new() -> TestResolver {
        let place = RegistryDirectory::new();
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
        let mut statement = connection.prepare(select).expect("a statement");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("texts")
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

#[test]
fn an_actor_is_registered_once() {
    let resolver = TestResolver::new();
    assert_eq!(resolver.register(HERMES, "12xY3z"), HERMES_ID);
    let again = "verb=RegisterActor&computerName=HERMES&domainName=DPI.inpe.br&port=080\
         &eMailAddress=other@dpi.inpe.br&password=12xY3z";
    assert_eq!(resolver.done(again), format!("actorID {HERMES_ID}"));
    resolver.refused(
        &again.replace("12xY3z", "a2xY3z"),
        "hermes.dpi.inpe.br with port 80 is registered already, with another password",
    );
    assert_eq!(
        resolver.column("SELECT email FROM actor"),
        ["banon@dpi.inpe.br"]
    );
    assert_eq!(resolver.register(HERMES, "12xY3z"), HERMES_ID);
    let other = resolver.register(&HERMES.replace("=80", "=8080"), "a2xY3z");
    assert_eq!(other, "dpi.inpe.br/hermes@8080/2009/03.17.15.17");
}

#[test]
fn a_password_and_an_address_are_changed_by_who_has_the_password() {
    let mut resolver = TestResolver::with_actors();
    let change = format!("verb=ChangePassword&{}&newPassword=a2xY3z", who(HERMES_ID));
    let none = "dpi.inpe.br/nobody@80/2009/03.17.15.17";
    for (actor, password) in [
        (HERMES_ID, "12xy3z"),
        (none, "12xY3z"),
        ("8JMKD3MGP8W/34PGRBS", "12xY3z"),
    ] {
        let asked =
            format!("verb=ChangePassword&actorID={actor}&password={password}&newPassword=a2xY3z");
        resolver.refused(
            &asked,
            &format!("no actor {actor} is registered with this password"),
        );
    }
    let done = resolver.done(&change);
    assert_eq!(
        done,
        format!("confirmationMessage the password of {HERMES_ID} is changed")
    );
    resolver.refused(&change, "is registered with this password");
    resolver.registry = resolver.place.open();
    let email = format!(
        "verb=ChangeEMailAddress&{}&newEmailAddress=banon@iconet.com.br",
        who(HERMES_ID)
    );
    resolver.refused(&email, "is registered with this password");
    resolver.done(&email.replace("12xY3z", "a2xY3z"));
    assert_eq!(
        resolver.column("SELECT email FROM actor"),
        ["banon@iconet.com.br", "banon@dpi.inpe.br"]
    );
    for secret in resolver.column("SELECT secret FROM actor") {
        assert!(secret.starts_with("$argon2id$") && !secret.contains("xY3z"));
    }
}

#[test]
fn a_password_that_was_changed_meanwhile_does_nothing() {
    let resolver = TestResolver::with_actors();
    let proof = Credentials {
        actor: Ibi::parse(HERMES_ID).expect("an actor"),
        password: crate::formats::registration::Password::parse("password", "12xY3z").expect("one"),
    };
    let actor = resolver.registry.proven(&proof).expect("proven");
    resolver.done(&format!(
        "verb=ChangePassword&{}&newPassword=a2xY3z",
        who(HERMES_ID)
    ));
    let late = resolver.registry.change(&actor, |_| Ok(()));
    assert!(matches!(
        late,
        Err(VerbError::Refused(RuleViolation::Credentials(_)))
    ));
}

#[test]
fn actors_are_bounded() {
    let mut resolver = TestResolver::with_actors();
    resolver.registry.bounds.actors = 2;
    let third = HERMES.replace("hermes", "zeus");
    let text = format!("verb=RegisterActor&{third}&eMailAddress=banon@dpi.inpe.br&password=12xY3z");
    resolver.refused(&text, "2 actors are registered here, and no more can be");
    // An actor that is registered still gets its identifier.
    assert_eq!(resolver.register(HERMES, "12xY3z"), HERMES_ID);
    resolver.document(APOLLO_ID, "");
    resolver.clock += DAYS_TO_TAKE_EFFECT * DAY;
    resolver.refused(&text, "no more can be");
    resolver.clock += 1;
    // Only an actor that has not taken effect is removed.
    let zeus = resolver.register(&third, "12xY3z");
    let actors = resolver.column("SELECT rep FROM actor ORDER BY rep");
    assert_eq!(actors, [APOLLO_ID.to_owned(), zeus]);
}

#[test]
fn documents_are_bounded() {
    let mut resolver = TestResolver::with_actors();
    resolver.registry.bounds.of_one_actor = 1;
    let first = resolver.document(HERMES_ID, "");
    let second = "documentURL=http://hermes.dpi.inpe.br/b.pdf";
    resolver.refused(
        &document(HERMES_ID, second),
        "has registered 1 documents and copies, and can register no more",
    );
    // A refused request leaves nothing behind, and a registration may still be changed.
    assert_eq!(resolver.column("SELECT ibi FROM document"), [&*first]);
    assert_eq!(resolver.document(HERMES_ID, "originalDocument=yes"), first);
    resolver.registry.bounds.in_all = 2;
    resolver.document(APOLLO_ID, &format!("documentID={first}"));
    resolver.registry.bounds.of_one_actor = 9;
    resolver.refused(
        &document(HERMES_ID, second),
        "2 documents and copies are registered here, and no more can be",
    );
    let delete = "verb=DeleteDocumentRegistration&";
    resolver.done(&format!("{delete}{}&documentID={first}", who(APOLLO_ID)));
    resolver.document(HERMES_ID, second);
}

#[test]
fn an_actor_takes_effect_with_its_first_document() {
    let mut resolver = TestResolver::with_actors();
    resolver.document(APOLLO_ID, "");
    let other = |computer: &str| {
        let place = HERMES.replace("hermes", computer);
        format!("verb=RegisterActor&{place}&eMailAddress=new@dpi.inpe.br&password=a2xY3z")
    };
    resolver.clock += DAYS_TO_TAKE_EFFECT * DAY;
    resolver.refused(&other("hermes"), "with another password");
    resolver.clock += 1;
    assert_eq!(
        resolver.done(&other("hermes")),
        format!("actorID {HERMES_ID}")
    );
    resolver.refused(&document(HERMES_ID, ""), "with this password");
    resolver.done(&document(HERMES_ID, "").replace("12xY3z", "a2xY3z"));
    resolver.clock += 800 * DAY;
    resolver.refused(&other("apollo"), "with another password");
    let confirmed = "SELECT confirmed_at FROM actor ORDER BY id";
    let dates = resolver.column(confirmed);
    assert_eq!(dates, ["2009-04-16T15:17:01Z", "2009-03-17T15:17:00Z"]);
    resolver.document(APOLLO_ID, "");
    assert_eq!(resolver.column(confirmed)[1], resolver.now().to_rfc3339());
}

#[test]
fn no_identifier_is_made_twice() {
    let mut resolver = TestResolver::with_actors();
    let mut seen = Vec::new();
    for round in 0..2 {
        for number in 0..8 {
            let url = format!("documentURL=http://hermes.dpi.inpe.br/{round}/{number}");
            let reply = resolver.ask(&document(HERMES_ID, &url));
            let id = inner(&reply.xml).replace("documentID ", "");
            let parsed = Ibi::parse(&id).expect("an identifier");
            let Ibi::Rep(rep) = &parsed else {
                panic!("{id}")
            };
            assert_eq!(rep.prefix(), "dpi.inpe.br/hermes@80");
            // The reply is delayed until the date has come.
            let sent = resolver.now().as_nanoseconds() + reply.wait.as_nanos() as i128;
            assert!(rep.timestamp().as_nanoseconds() <= sent);
            assert!(!seen.contains(&parsed), "{id}");
            seen.push(parsed);
            // Deleting the document does not free its date.
            let delete = format!(
                "verb=DeleteDocumentRegistration&{}&documentID={id}",
                who(HERMES_ID)
            );
            resolver.done(&delete);
        }
        resolver.registry = resolver.place.open();
    }
    assert!(!seen.contains(&Ibi::parse(HERMES_ID).expect("an identifier")));
    resolver.clock -= 60;
    let early = document(HERMES_ID, "");
    resolver.refused(&early, "no identifier can be made now: the next free date");
}

#[test]
fn an_actor_may_make_identifiers_itself() {
    let mut resolver = TestResolver::with_actors();
    resolver.clock += 3600;
    let own = "dpi.inpe.br/Hermes@80/2009/03.17.16.17";
    let register = |id: &str| document(HERMES_ID, &format!("documentID={id}"));
    assert_eq!(resolver.done(&register(own)), format!("documentID {own}"));
    // The answer has the spelling of the first registration.
    assert_eq!(
        resolver.done(&register(&own.to_lowercase())),
        format!("documentID {own}")
    );
    let delete = format!(
        "verb=DeleteDocumentRegistration&{}&documentID={own}",
        who(HERMES_ID)
    );
    resolver.done(&delete);
    // The date stays used after the deletion.
    assert_ne!(
        resolver.document(HERMES_ID, "").to_lowercase(),
        own.to_lowercase()
    );
    resolver.refused(
        &register("3D446S8B8W/C4U55T2"),
        "documentID 3D446S8B8W/C4U55T2 has the date 2119-09-13T03:01:21Z, which is yet to come",
    );
    resolver.refused(
        &register("dpi.inpe.br/x/2009/03.17.16.17.02"),
        "which is yet to come",
    );
    resolver.refused(&register("dpi.inpe.br/x/2009/02.30.00.00"), "documentID: ");
    resolver.refused(
        &register(APOLLO_ID),
        &format!("{APOLLO_ID} is the identifier of an actor"),
    );
    // A date that is taken is skipped.
    resolver.clock += 60;
    let taken = "dpi.inpe.br/hermes@80/2009/03.17.16.18";
    resolver.document(APOLLO_ID, "documentID=3D446S8B8W/34U55T2");
    let insert = format!("INSERT INTO document (ibi, spelling) VALUES ('{taken}', '{taken}')");
    resolver
        .registry
        .lock()
        .execute(&insert, [])
        .expect("a row");
    let next = resolver.document(HERMES_ID, "documentURL=http://hermes.dpi.inpe.br/b.pdf");
    assert_eq!(next, "dpi.inpe.br/hermes@80/2009/03.17.16.18.00.001");
}

#[test]
fn urls_are_of_the_actors_own_host_and_port() {
    let resolver = TestResolver::with_actors();
    let with = |url: &str| document(HERMES_ID, &format!("documentURL={url}"));
    for own in [
        "http://HERMES.dpi.inpe.br/",
        "http://hermes.dpi.inpe.br.:80/x",
    ] {
        resolver.done(&with(own));
    }
    assert_eq!(*resolver.asked.borrow(), Vec::<String>::new());
    resolver.done(&with("http://www.dpi.inpe.br/"));
    resolver.done(&with("http://10.0.0.1/"));
    let count = resolver.column("SELECT url FROM registration").len();
    let port = "is not of port 80, which is the actor's";
    resolver.refused(&with("http://hermes.dpi.inpe.br:8080/"), port);
    resolver.refused(&with("https://hermes.dpi.inpe.br/"), port);
    let host = "is not of hermes.dpi.inpe.br, the actor's host";
    resolver.refused(&with("http://apollo.dpi.inpe.br/"), host);
    resolver.refused(&with("http://dpi.inpe.br/"), host);
    resolver.refused(&with("http://hermes.dpi.inpe.br.evil.org/"), host);
    let more = |more: &str| document(HERMES_ID, more);
    let metadata = "metadataURL=http://hermes.dpi.inpe.br/&metadataLastUpdate=2008-07-17T17:22:06Z\
        &metadataURL=http://a.b/&metadataLastUpdate=2008-07-17T17:22:06Z";
    resolver.refused(
        &more(metadata),
        "metadataURL 'http://a.b/' is not of hermes.dpi.inpe.br",
    );
    resolver.refused(
        &more("nextEditionURL=http://a.b/"),
        "nextEditionURL 'http://a.b/' is not of",
    );
    resolver.refused(
        &more("previousEditionURL=http://a.b/"),
        "previousEditionURL 'http://a.b/' is not of",
    );
    let hosts: String = (1..=4)
        .map(|_| "&metadataURL=http://www.dpi.inpe.br/&metadataLastUpdate=2008-07-17T17:22:06Z")
        .collect();
    resolver.asked.borrow_mut().clear();
    resolver.done(
        &with("http://www.dpi.inpe.br/")
            .replace("www.dpi.inpe.br/", &format!("www.dpi.inpe.br/{hosts}")),
    );
    assert_eq!(
        *resolver.asked.borrow(),
        ["hermes.dpi.inpe.br", "www.dpi.inpe.br"]
    );
    assert_eq!(resolver.column("SELECT url FROM registration").len(), count);
    // Two hosts without addresses share none.
    let nowhere = resolver.register("computerName=no&domainName=where.org&port=80", "12xY3z");
    let asked = document(HERMES_ID, "documentURL=http://else.org/").replace(HERMES_ID, &nowhere);
    resolver.refused(&asked, "is not of no.where.org");
}

#[test]
fn a_domain_has_its_share() {
    let mut resolver = TestResolver::new();
    resolver.registry.bounds.actors_of_domain = 2;
    let place =
        |host: &str, domain: &str| format!("computerName={host}&domainName={domain}&port=80");
    resolver.register(&place("a", "x.evil.example"), "12xY3z");
    resolver.register(&place("b", "y.z.EVIL.example."), "12xY3z");
    let text = |place: &str| format!("verb=RegisterActor&{place}&eMailAddress=a@b&password=12xY3z");
    let third = text(&place("www", "evil.example"));
    resolver.refused(&third, "2 actors of this domain are registered here");
    for domain in ["one.com.br", "two.com.br", "three.com.br"] {
        resolver.register(&place("www", domain), "12xY3z");
    }
}

#[test]
fn few_hosts_are_looked_up_and_only_for_who_has_the_password() {
    let resolver = TestResolver::with_actors();
    let actor = resolver.registry.proven(&Credentials {
        actor: Ibi::parse(HERMES_ID).expect("an actor"),
        password: crate::formats::registration::Password::parse("password", "12xY3z").expect("one"),
    });
    let actor = actor.expect("proven");
    let groups: String = (0..=MOST_HOSTS)
        .map(|number| {
            format!("&metadataURL=http://{number}.org/&metadataLastUpdate=2008-07-17T17:22:06Z")
        })
        .collect();
    let text = document(HERMES_ID, &groups);
    let fields = FormFields::parse(&text).expect("fields");
    let Ok(RegistrationRequest::RegisterDocument(_, _, document)) =
        RegistrationRequest::of(Verb::RegisterDocument, &fields)
    else {
        panic!("{text}");
    };
    let one = |_: &str| Ok(vec![IpAddr::from([10, 0, 0, 1])]);
    assert!(matches!(
        check_urls(&actor, &document, &one),
        Err(RuleViolation::TooManyHosts)
    ));
    resolver.refused(&text.replace("12xY3z", "a2xY3z"), "with this password");
    assert_eq!(*resolver.asked.borrow(), Vec::<String>::new());
}

#[test]
fn to_register_again_overwrites() {
    let resolver = TestResolver::with_actors();
    let display = format!(
        "verb=DisplayIDRegistration&{}&documentID={DOCUMENT}",
        who(APOLLO_ID)
    );
    resolver.refused(&display, &format!("no document {DOCUMENT} is registered"));
    let full = given(
        "originalDocument=yes&fingerprint=d41d8cd98f00b204e9800998ecf8427e\
         &metadataURL=http://hermes.dpi.inpe.br/m&metadataLastUpdate=2008-07-17T17:22:06Z&metadataLanguage=pt-BR\
         &metadataURL=http://hermes.dpi.inpe.br/n&metadataLastUpdate=2008-07-17T17:22:06Z&metadataFormat=mtd2-br\
         &previousEditionURL=http://hermes.dpi.inpe.br/1&nextEditionURL=http://hermes.dpi.inpe.br/3",
    );
    resolver.document(HERMES_ID, &full);
    let shown = resolver.ask(&display).xml;
    let order = [
        "<documentID>dpi.inpe.br/banon/1998/08.02.08.56<",
        "<actorID>dpi.inpe.br/hermes@80/2009/03.17.15.17<",
        "<originalDocument>yes<",
        "<documentURL>http://hermes.dpi.inpe.br/a.pdf<",
        "<documentLastUpdate>2008-07-17T17:22:06-03:00<",
        "<fingerprint>d41d8cd98f00b204e9800998ecf8427e<",
        "<metadataURL>http://hermes.dpi.inpe.br/m<",
        "<metadataLanguage>pt-BR<",
        "<metadataURL>http://hermes.dpi.inpe.br/n<",
        "<metadataFormat>mtd2-br<",
        "<previousEditionURL>http://hermes.dpi.inpe.br/1<",
        "<nextEditionURL>http://hermes.dpi.inpe.br/3<",
    ];
    let mut rest = shown.as_str();
    for element in order {
        rest = rest
            .split_once(element)
            .unwrap_or_else(|| panic!("{element} in {shown}"))
            .1;
    }
    resolver.document(
        HERMES_ID,
        &given("documentURL=http://hermes.dpi.inpe.br/b.pdf"),
    );
    let shown = resolver.ask(&display).xml;
    assert!(shown.contains("<originalDocument>no<") && shown.contains("/b.pdf<"));
    for gone in ["a.pdf", "fingerprint", "metadata", "Edition"] {
        assert!(!shown.contains(gone), "{shown}");
    }
    assert!(!shown.contains("banon@dpi"));
}

#[test]
fn an_actor_has_no_two_documents_at_one_url() {
    let resolver = TestResolver::with_actors();
    let id = resolver.document(HERMES_ID, "");
    assert_eq!(resolver.document(HERMES_ID, "originalDocument=yes"), id);
    resolver.refused(
        &document(HERMES_ID, &given("")),
        &format!("documentURL 'http://hermes.dpi.inpe.br/a.pdf' is registered by this actor as document {id}"),
    );
    let other = "documentURL=http://hermes.dpi.inpe.br/b.pdf";
    resolver.document(HERMES_ID, &given(other));
    resolver.refused(
        &document(HERMES_ID, &format!("documentID={id}&{other}")),
        &format!("as document {DOCUMENT}"),
    );
    assert_eq!(
        resolver.column("SELECT spelling FROM document"),
        [id.as_str(), DOCUMENT]
    );
    // Without a `documentURL`, each registration is a new document.
    let metadata = format!(
        "verb=RegisterDocument&{}&metadataURL=http://hermes.dpi.inpe.br/m&metadataLastUpdate=2008-07-17T17:22:06Z",
        who(HERMES_ID)
    );
    assert_ne!(resolver.done(&metadata), resolver.done(&metadata));
}

#[test]
fn who_registers_first_holds_it_and_others_hold_copies() {
    let resolver = TestResolver::with_actors();
    resolver.document(HERMES_ID, &given(""));
    resolver.refused(
        &document(APOLLO_ID, &given("originalDocument=yes")),
        &format!("document {DOCUMENT} was first registered by {HERMES_ID}, so here it is a copy"),
    );
    resolver.document(APOLLO_ID, &given("originalDocument=no"));
    resolver.document(HERMES_ID, &given("originalDocument=yes"));
    resolver.refused(
        &document(APOLLO_ID, &given("originalDocument=yes")),
        "a copy cannot be an original",
    );
    let display = format!(
        "verb=DisplayIDRegistration&{}&documentID={DOCUMENT}",
        who(APOLLO_ID)
    );
    let shown = resolver.ask(&display).xml;
    let (first, second) = shown.split_once("</actor>").expect("two actors");
    assert!(first.contains(HERMES_ID) && first.contains("<originalDocument>yes<"));
    assert!(second.contains(APOLLO_ID) && !second.contains("originalDocument"));
}

#[test]
fn a_document_is_handed_over_to_who_has_a_copy() {
    let resolver = TestResolver::with_actors();
    let change = |from: &str, to: &str| {
        format!(
            "verb=ChangeActor&{}&documentID={DOCUMENT}&newActorID={to}",
            who(from)
        )
    };
    resolver.refused(
        &change(HERMES_ID, APOLLO_ID),
        &format!("no document {DOCUMENT} is registered"),
    );
    resolver.document(HERMES_ID, &given("originalDocument=yes"));
    resolver.refused(
        &change(APOLLO_ID, HERMES_ID),
        &format!("document {DOCUMENT} is not registered by {APOLLO_ID}"),
    );
    resolver.refused(
        &change(HERMES_ID, APOLLO_ID),
        &format!("document {DOCUMENT} is not registered by the new actor {APOLLO_ID}"),
    );
    resolver.refused(&change(HERMES_ID, HERMES_ID), "is the actor itself");
    let nobody = "dpi.inpe.br/nobody@80/2009/03.17.15.17";
    resolver.refused(
        &change(HERMES_ID, nobody),
        &format!("no actor {nobody} is registered"),
    );
    resolver.document(APOLLO_ID, &given(""));
    resolver.refused(
        &change(APOLLO_ID, HERMES_ID),
        &format!("is a copy; only {HERMES_ID} can hand the document over"),
    );
    let wrong = change(HERMES_ID, APOLLO_ID).replace("12xY3z", "a2xY3z");
    resolver.refused(&wrong, "with this password");
    let states = "SELECT rep || ' ' || is_copy || ' ' || is_original FROM registration
         JOIN actor ON actor.id = registration.actor ORDER BY actor.id";
    assert_eq!(
        resolver.column(states),
        [format!("{HERMES_ID} 0 1"), format!("{APOLLO_ID} 1 0")]
    );
    let done = resolver.done(&change(HERMES_ID, APOLLO_ID));
    assert_eq!(
        done,
        format!(
            "confirmationMessage the original of document {DOCUMENT} is transferred to {APOLLO_ID}; what {HERMES_ID} has is now a copy"
        )
    );
    assert_eq!(
        resolver.column(states),
        [format!("{HERMES_ID} 1 0"), format!("{APOLLO_ID} 0 1")]
    );
    resolver.refused(
        &change(HERMES_ID, APOLLO_ID),
        &format!("only {APOLLO_ID} can hand"),
    );
    resolver.refused(
        &document(HERMES_ID, &given("originalDocument=yes")),
        "a copy cannot be an original",
    );
    // A transfer does not make an original of a document that is none.
    resolver.document(APOLLO_ID, &given("originalDocument=no"));
    resolver.done(&change(APOLLO_ID, HERMES_ID));
    assert_eq!(
        resolver.column(states),
        [format!("{HERMES_ID} 0 0"), format!("{APOLLO_ID} 1 0")]
    );
}

#[test]
fn a_registration_is_not_deleted_while_there_are_copies() {
    let resolver = TestResolver::with_actors();
    let delete = |actor: &str| {
        format!(
            "verb=DeleteDocumentRegistration&{}&documentID={DOCUMENT}",
            who(actor)
        )
    };
    resolver.refused(
        &delete(HERMES_ID),
        &format!("no document {DOCUMENT} is registered"),
    );
    resolver.document(HERMES_ID, &given(""));
    resolver.refused(
        &delete(APOLLO_ID),
        &format!("is not registered by {APOLLO_ID}"),
    );
    resolver.document(
        APOLLO_ID,
        &given("metadataURL=http://apollo.dpi.inpe.br/m&metadataLastUpdate=2008-07-17T17:22:06Z"),
    );
    let third = resolver.register(&HERMES.replace("hermes", "zeus"), "12xY3z");
    resolver.document(&third, &given(""));
    resolver.refused(
        &delete(HERMES_ID),
        &format!("document {DOCUMENT} has copies, registered by {APOLLO_ID}, {third}"),
    );
    resolver.refused(
        &delete(APOLLO_ID).replace("12xY3z", "a2xY3z"),
        "with this password",
    );
    let done = resolver.done(&delete(APOLLO_ID));
    assert_eq!(
        done,
        format!(
            "confirmationMessage the registration of document {DOCUMENT} by {APOLLO_ID} is deleted"
        )
    );
    resolver.refused(&delete(HERMES_ID), &format!("registered by {third};"));
    resolver.done(&delete(&third));
    resolver.done(&delete(HERMES_ID));
    resolver.refused(
        &delete(HERMES_ID),
        &format!("no document {DOCUMENT} is registered"),
    );
    assert_eq!(
        resolver.column("SELECT url FROM metadata"),
        Vec::<String>::new()
    );
    // After the deletion, the next actor to register it is the first.
    resolver.document(APOLLO_ID, &given("originalDocument=yes"));
}

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
fn what_the_resolver_cannot_do_is_no_refusal_and_tells_nothing_of_it() {
    let resolver = TestResolver::with_actors();
    let drop = "DROP TABLE metadata; DROP TABLE registration";
    resolver
        .registry
        .lock()
        .execute_batch(drop)
        .expect("dropped");
    let reply = resolver.ask(&document(HERMES_ID, ""));
    assert_eq!(reply.status, ReplyStatus::Failed);
    assert_eq!(
        inner(&reply.xml),
        "errorMessage the resolver cannot do this now; ask again later"
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
