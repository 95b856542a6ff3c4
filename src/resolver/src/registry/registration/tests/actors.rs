//! Actors: registration, passwords and addresses, and how many there may be.

use super::*;

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
        resolver.column("SELECT email FROM actor ORDER BY id"),
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
        resolver.column("SELECT email FROM actor ORDER BY id"),
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
        password: ibifs_formats::registration::Password::parse("password", "12xY3z").expect("one"),
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
