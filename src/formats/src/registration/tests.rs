//! Requests of the 2009 protocol: which parameters are read and which are refused.

use super::*;
use crate::query::FormFields;
use ibi::Ibi;

const WHO: &str = "actorID=dpi.inpe.br/hermes@80/2009/03.17.15.17&password=12xY3z";

fn read(text: &str) -> Result<RegistrationRequest, RequestError> {
    let fields = FormFields::parse(text).expect("fields");
    verb_of(&fields).and_then(|verb| RegistrationRequest::of(verb, &fields))
}

#[track_caller]
fn bad(text: &str, sentence: &str) {
    assert_eq!(read(text).expect_err(text).to_string(), sentence);
}

/// A valid `RegisterDocument`, with these parameters added.
fn document(more: &str) -> String {
    format!(
        "verb=RegisterDocument&{WHO}&documentURL=http://hermes.dpi.inpe.br/a.pdf\
         &documentLastUpdate=2008-07-17T17:22:06-03:00&{more}"
    )
}

#[test]
fn the_example_of_the_text_is_read() {
    let asked = read(
        "verb=RegisterDocument&actorID=sid.inpe.br/mtc-m18@80/2008/03.17.15.17&password=12xY3z\
         &documentID=3D446S8B8W/34U55T2&originalDocument=yes\
         &documentURL=http://mtc-m17.sid.inpe.br/col/sid.inpe.br/mtc-m17%254080/2007/12.07.10.48/doc/paginadeacesso\
         &documentLastUpdate=2008-07-17T17:22:06-03:00\
         &metadataURL=http://mtc-m17.sid.inpe.br/col/x/doc/mirrorget.cgi?metadatarepository=dpi.inpe.br/banon/2000/05.25.20.06\
         &metadataLastUpdate=2009-03-12T16:20:53-03:00+2009:03.12.16.20.53&metadataFormat=&metadataLanguage=pt-BR\
         &metadataURL=http://mtc-m17.sid.inpe.br/oai.cgi?verb=GetRecord%26metadataPrefix=mtd2-br\
         &metadataLastUpdate=2009-03-12T16:20:53-03:00&metadataFormat=mtd2-br&metadataLanguage=en",
    );
    let Ok(RegistrationRequest::RegisterDocument(who, Some(id), document)) = asked else {
        panic!("{asked:?}");
    };
    assert_eq!(
        who.actor.to_string(),
        "sid.inpe.br/mtc-m18@80/2008/03.17.15.17"
    );
    assert_eq!(id.to_string(), "3D446S8B8W/34U55T2");
    assert!(document.is_original);
    let content = document.content.expect("a document");
    assert_eq!(
        content.url.as_str(),
        "http://mtc-m17.sid.inpe.br/col/sid.inpe.br/mtc-m17%4080/2007/12.07.10.48/doc/paginadeacesso"
    );
    assert_eq!(content.updated.as_str(), "2008-07-17T17:22:06-03:00");
    let metadata: Vec<_> = document
        .metadata
        .iter()
        .map(|found| {
            let format = found.format.as_ref().map(ToString::to_string);
            let language = found.language.as_ref().map(ToString::to_string);
            (found.url.as_str(), found.updated.as_str(), format, language)
        })
        .collect();
    let expected = [
        (
            "http://mtc-m17.sid.inpe.br/col/x/doc/mirrorget.cgi?metadatarepository=dpi.inpe.br/banon/2000/05.25.20.06",
            "2009-03-12T16:20:53-03:00",
            None,
            Some("pt-BR".to_owned()),
        ),
        (
            "http://mtc-m17.sid.inpe.br/oai.cgi?verb=GetRecord&metadataPrefix=mtd2-br",
            "2009-03-12T16:20:53-03:00",
            Some("mtd2-br".to_owned()),
            Some("en".to_owned()),
        ),
    ];
    assert_eq!(metadata, expected);
}

#[test]
fn an_actor_is_a_computer_a_domain_and_a_port() {
    let actor = "verb=RegisterActor&eMailAddress=banon@dpi.inpe.br&password=12xY3z";
    let read = |place: &str| read(&format!("{actor}&{place}"));
    let Ok(RegistrationRequest::RegisterActor { provider, .. }) =
        read("computerName=Hermes&domainName=dpi.INPE.br.&port=80")
    else {
        panic!("not read");
    };
    assert_eq!(provider.host(), "hermes.dpi.inpe.br");
    assert_eq!(provider.port(), 80);
    assert_eq!(provider.prefix().to_string(), "dpi.inpe.br/hermes@80");
    let refused = |place: &str| read(place).expect_err(place).to_string();
    assert_eq!(
        refused("computerName=a.b&domainName=c.d&port=80"),
        "computerName 'a.b' is not the name of a computer alone, such as hermes; the rest is domainName"
    );
    for port in ["0", "65536", "+80", "-1", "x", "080000"] {
        let place = format!(
            "computerName=a&domainName=c.d&port={}",
            port.replace('+', "%2B")
        );
        assert_eq!(
            refused(&place),
            format!("port '{port}' is not a number from 1 to 65535")
        );
    }
    for domain in ["a/b", "a..b", "-a", "a%20b", "127.0.0.1", "%C3%A9"] {
        refused(&format!("computerName=a&domainName={domain}&port=80"));
    }
    let long = "a".repeat(64);
    assert!(
        refused(&format!("computerName={long}&domainName=c.d&port=80")).contains("short enough")
    );
}

#[test]
#[rustfmt::skip] // one case, one line
fn parameters_that_are_refused() {
    const VERBS: &str = "RegisterActor, ChangePassword, ChangeEMailAddress, RegisterDocument, ChangeActor, DeleteDocumentRegistration or DisplayIDRegistration";
    bad("", &format!("verb= is missing; use {VERBS}"));
    bad("verb=", &format!("verb= is missing; use {VERBS}"));
    bad("verb=registeractor", &format!("'registeractor' is not a verb; use {VERBS}"));
    bad("verb=ChangeActor&verb=ChangeActor", "verb is given twice; give it once");
    bad("verb=ChangePassword", "ChangePassword needs actorID, which is not given");
    bad(&format!("verb=ChangePassword&{WHO}"), "ChangePassword needs newPassword, which is not given");
    bad(&format!("verb=ChangePassword&{WHO}&newPassword="), "ChangePassword needs newPassword, which is not given");
    bad(&format!("verb=ChangePassword&{WHO}&newPassword=12345"), "newPassword is not 6 to 128 bytes without control characters");
    bad(&format!("verb=ChangePassword&{WHO}&newPassword=1234567%00"), "newPassword is not 6 to 128 bytes without control characters");
    bad(&format!("verb=ChangePassword&{WHO}&newPassword={}", "x".repeat(129)), "newPassword is not 6 to 128 bytes without control characters");
    bad(&format!("verb=ChangePassword&{WHO}&newPassword={}", "x".repeat(256)), "newPassword is longer than 255 bytes; give a shorter one");
    bad(&format!("verb=ChangePassword&{WHO}&newPassword=abcdef&newPassword=abcdef"), "newPassword is given twice; give it once");
    bad(&format!("verb=ChangePassword&{WHO}&identifier=x"), "ChangePassword has no parameter 'identifier'; it has actorID, password and newPassword, and in a value & is written %26");
    bad(&format!("verb=ChangeEMailAddress&{WHO}&newEmailAddress=banon"), "newEmailAddress 'banon' is not an e-mail address, such as banon@dpi.inpe.br");
    bad(&format!("verb=DisplayIDRegistration&{WHO}&documentID=a/b/c"), &format!("documentID: {}", Ibi::parse("a/b/c").expect_err("no identifier")));
}

#[test]
#[rustfmt::skip] // one case, one line
fn documents_that_are_refused() {
    let case = |more: &str, sentence: &str| bad(&document(more), sentence);
    let bare = |more: &str, sentence: &str| bad(&format!("verb=RegisterDocument&{WHO}&{more}"), sentence);
    assert!(read(&document("")).is_ok());
    bare("originalDocument=no", "there is neither documentURL nor metadataURL; give one of them at least");
    bare("documentURL=http://a.b/", "documentURL is given without documentLastUpdate; give both");
    bare("documentLastUpdate=2008-07-17T17:22:06Z", "documentLastUpdate is given without documentURL; give both");
    case("originalDocument=Yes", "originalDocument 'Yes' is not yes or no");
    case("fingerprint=d41d8cd98f00b204e9800998ecf8427", "fingerprint 'd41d8cd98f00b204e9800998ecf8427' is not the 32 hexadecimal digits of MD5");
    case("fingerprint=g41d8cd98f00b204e9800998ecf8427e", "fingerprint 'g41d8cd98f00b204e9800998ecf8427e' is not the 32 hexadecimal digits of MD5");
    case("metadataURL=http://a.b/", "metadataURL is given without metadataLastUpdate; give both");
    case("metadataURL=http://a.b/&metadataURL=http://a.c/&metadataLastUpdate=2008-07-17T17:22:06Z", "metadataURL is given without metadataLastUpdate; give both");
    case("metadataURL=&metadataLastUpdate=2008-07-17T17:22:06Z", "metadataLastUpdate is given without metadataURL; give both");
    case("metadataURL=&metadataLanguage=pt", "metadataFormat or metadataLanguage is given without metadataURL; give both");
    case("metadataLanguage=pt&metadataURL=http://a.b/", "metadataLanguage stands before any metadataURL; give it after the metadataURL that it is about");
    case("metadataURL=http://a.b/&metadataLanguage=pt&metadataLanguage=en", "metadataLanguage is given twice; give it once");
    case("metadataURL=http://a.b/&metadataLastUpdate=2008-07-17T17:22:06Z&metadataLanguage=por", "metadataLanguage: language 'por' is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR");
    case("metadataURL=http://a.b/&metadataLastUpdate=2008-07-17T17:22:06Z&metadataFormat=a+b", "metadataFormat: format 'a b' is not a word of letters, digits, _ and -");
    case(&"&metadataURL=http://a.b/&metadataLastUpdate=2008-07-17T17:22:06Z".repeat(51), "there are more than 50 metadataURL; give those that matter most");
    case(&format!("nextEditionURL=http://a.b/{}", "x".repeat(2048)), "nextEditionURL is longer than 2048 bytes; give a shorter one");
    assert!(read(&document(&"&metadataURL=http://a.b/&metadataLastUpdate=2008-07-17T17:22:06Z".repeat(50))).is_ok());
    // The blank fields of a form.
    assert_eq!(read(&document("metadataLanguage=&fingerprint=&metadataURL=&metadataLastUpdate=&metadataFormat=&metadataLanguage=&documentID=")), read(&document("")));
}

#[test]
fn moments_have_an_offset() {
    for good in [
        "2008-07-17T17:22:06Z",
        "2008-07-17T17:22:06.25-03:00",
        "2008-02-29T00:00:00+05:30",
    ] {
        let text = format!("{good} 2009:03.12.16.20.53");
        assert_eq!(LastUpdate::parse("t", good).expect(good).as_str(), good);
        assert_eq!(LastUpdate::parse("t", &text).expect(good).as_str(), good);
    }
    for bad in [
        "",
        "Z",
        "2008-07-17",
        "2008-07-17T17:22:06",
        "2008-07-17 17:22:06Z",
        "2008-07-17T17:22:06 03:00",
        "2008-07-17T17:22:06-0300",
        "2008-07-17T17:22:06-24:00",
        "2008-07-17T17:22:06-03:60",
        "2008-07-17T17:22:06-+3:00",
        "2008-07-17T17:22:06Z-03:00",
        "2007-02-29T00:00:00Z",
        "2008-07-17T24:00:00Z",
        "0000-01-01T00:00:00+00:01",
        "2008-07-17T17:22:06Z x",
        "2008-07-17T17:22:06\u{e9}03:00",
    ] {
        assert!(LastUpdate::parse("t", bad).is_err(), "{bad}");
    }
}

#[test]
fn urls_have_a_host_and_a_port() {
    #[track_caller]
    fn good(text: &str, host: &str, port: u16) {
        let url = WebUrl::parse("u", text).expect(text);
        assert_eq!((url.as_str(), url.host(), url.port()), (text, host, port));
    }
    good("http://A.b/x?y=http://c#z", "a.b", 80);
    good("HTTPS://a.b", "a.b", 443);
    good("http://a.b.:8080?x", "a.b", 8080);
    good("http://a:/", "a", 80);
    good("http://127.0.0.1/", "127.0.0.1", 80);
    good("https://[::1]:1/", "::1", 1);
    let url = WebUrl::parse("u", "http://a.b/x y/\u{e9}%20<\\>?z").expect("a URL");
    assert_eq!(url.as_str(), "http://a.b/x%20y/%C3%A9%20%3C%5C%3E?z");
    assert_eq!(WebUrl::parse("u", url.as_str()), Ok(url));
    for bad in [
        "",
        "http://",
        "http:///x",
        "ftp://a.b/",
        "//a.b/",
        "a.b/x",
        "http://a.b:0/",
        "http://a.b:65536/",
        "http://a.b:+80/",
        "http://user@a.b/",
        "http://a.b\\@c.d/",
        "http://a.b\\c",
        "http://[::1/",
        "http://[x]/",
        "http://::1/",
        "http://a..b/",
        "http://a.b /x",
        "http://\u{e9}.b/",
        "http://a.b/\n",
        "http://a.b<x>/",
        "http://a.b/\u{7f}",
    ] {
        assert!(WebUrl::parse("u", bad).is_err(), "{bad}");
    }
}

#[test]
fn a_password_is_never_shown() {
    let error =
        read("verb=ChangePassword&actorID=a.b/c/2009/03.17.15.17&password=1x&newPassword=abcdef");
    assert!(!error.expect_err("short").to_string().contains("1x"));
    let good = read(&format!("verb=ChangePassword&{WHO}&newPassword=abcdef")).expect("good");
    let shown = format!("{good:?}");
    assert!(!shown.contains("12xY3z") && !shown.contains("abcdef"));
}

#[test]
fn answers_are_the_words_of_the_text() {
    let xml = RegistrationAnswer::Refused("a < b & \u{1}\u{ffff}]]> \"c\"".to_owned()).to_xml(None);
    assert_eq!(
        xml,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<answer>\n  <errorMessage>a &lt; b &amp; \
         \u{fffd}\u{fffd}]]&gt; &quot;c&quot;</errorMessage>\n</answer>\n"
    );
    let more = "originalDocument=yes&fingerprint=D41D8CD98F00B204E9800998ECF8427E\
        &metadataURL=http://a.b/m?x%26y&metadataLastUpdate=2008-07-17T17:44:57-03:00&metadataFormat=mtd2-br\
        &metadataURL=http://a.b/n&metadataLastUpdate=2008-07-17T17:44:57Z&metadataLanguage=pt-BR\
        &previousEditionURL=http://a.b/1&nextEditionURL=http://a.b/2";
    let holding = |actor: &str, is_copy, more: &str| {
        let Ok(RegistrationRequest::RegisterDocument(_, _, document)) = read(&document(more))
        else {
            panic!("{more}");
        };
        Holding {
            actor: actor.to_owned(),
            is_copy,
            is_own: false,
            document: *document,
        }
    };
    let record = DocumentRecord {
        document: "3D446S8B8W/34U55T2".to_owned(),
        holdings: vec![holding("one", false, more), holding("two", true, "")],
    };
    let xml =
        RegistrationAnswer::Registered(Box::new(record)).to_xml(Some(Verb::DisplayIDRegistration));
    assert_eq!(
        xml,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<answer verb=\"DisplayIDRegistration\">
  <registration>
    <documentID>3D446S8B8W/34U55T2</documentID>
    <actor>
      <actorID>one</actorID>
      <originalDocument>yes</originalDocument>
      <documentURL>http://hermes.dpi.inpe.br/a.pdf</documentURL>
      <documentLastUpdate>2008-07-17T17:22:06-03:00</documentLastUpdate>
      <fingerprint>d41d8cd98f00b204e9800998ecf8427e</fingerprint>
      <metadata>
        <metadataURL>http://a.b/m?x&amp;y</metadataURL>
        <metadataLastUpdate>2008-07-17T17:44:57-03:00</metadataLastUpdate>
        <metadataFormat>mtd2-br</metadataFormat>
      </metadata>
      <metadata>
        <metadataURL>http://a.b/n</metadataURL>
        <metadataLastUpdate>2008-07-17T17:44:57Z</metadataLastUpdate>
        <metadataLanguage>pt-BR</metadataLanguage>
      </metadata>
      <previousEditionURL>http://a.b/1</previousEditionURL>
      <nextEditionURL>http://a.b/2</nextEditionURL>
    </actor>
    <actor>
      <actorID>two</actorID>
      <documentURL>http://hermes.dpi.inpe.br/a.pdf</documentURL>
      <documentLastUpdate>2008-07-17T17:22:06-03:00</documentLastUpdate>
    </actor>
  </registration>
</answer>
"
    );
}
