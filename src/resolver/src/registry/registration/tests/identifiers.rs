//! Identifiers and URLs of documents: which an actor may give, and which it gets.

use super::*;

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
    let insert =
        format!("INSERT INTO document (id, ibi, spelling) VALUES (99, '{taken}', '{taken}')");
    resolver
        .registry
        .lock()
        .execute(&insert, &[])
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
fn few_hosts_are_looked_up_and_only_for_who_has_the_password() {
    let resolver = TestResolver::with_actors();
    let actor = resolver.registry.proven(&Credentials {
        actor: Ibi::parse(HERMES_ID).expect("an actor"),
        password: ibifs_formats::registration::Password::parse("password", "12xY3z").expect("one"),
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
