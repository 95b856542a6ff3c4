//! The Archives that hold the registration of a document or a copy, and how both change.

use super::*;

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

/// Note 1 of section 4.4 of the protocol: no actor has two documents that are equal.
#[test]
fn a_second_document_with_one_fingerprint_is_refused() {
    let resolver = TestResolver::with_actors();
    let same = "fingerprint=d41d8cd98f00b204e9800998ecf8427e";
    let first = resolver.document(HERMES_ID, same);
    let second = format!("documentURL=http://hermes.dpi.inpe.br/b.pdf&{same}");
    let sentence =
        format!("a document with this fingerprint is registered by this actor as document {first}");
    resolver.refused(&document(HERMES_ID, &second), &sentence);
    let named = format!("{second}&documentID={DOCUMENT}");
    resolver.refused(&document(HERMES_ID, &named), &sentence);
    assert_eq!(resolver.column("SELECT ibi FROM document"), [&*first]);
    // The document itself may get another URL, and other actors have copies.
    let moved = format!("{second}&documentID={first}");
    assert_eq!(resolver.document(HERMES_ID, &moved), first);
    resolver.document(APOLLO_ID, same);
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
    // A transfer does not make an original of a document that is not one.
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
