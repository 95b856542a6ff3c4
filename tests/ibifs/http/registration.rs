//! The registration protocol of 2009 (ibi-resolution(7)), tested with curl.

use super::served::{Fixture, Served, registry};
use super::stub::{Reply, Stub};
use crate::support::TestEnv;

/// The functions that every script here may use: `ask` and `post` with pairs, which print the status and what is in the
/// answer below its root.
const TOOLS: &str = r#"
send() { curl -s -o answer -w '%{http_code} ' "$@"; xmllint --xpath 'concat(local-name(/answer/*[1]), " ", normalize-space(/answer/*[1]))' answer; }
ask() { local pairs=(); for pair; do pairs+=(--data-urlencode "$pair"); done; send -G "${pairs[@]}" "$U/"; }
post() { local pairs=(); for pair; do pairs+=(--data-urlencode "$pair"); done; send "${pairs[@]}" "$U/J8LNKB5R7W/3FUQHC5"; }
value() { xmllint --xpath "string(//$1)" answer; }
"#;

/// Two actors, whose URLs are of this machine, and a document of the first.
fn fixture() -> Fixture {
    scene_in(TestEnv::new())
}

fn scene_in(env: TestEnv) -> Fixture {
    let resolver = Served::resolver(&env, "--registration-2009");
    let fixture = Fixture::new(env, resolver, TOOLS);
    fixture.sh(
        "for name in hermes apollo; do
            post verb=RegisterActor computerName=$name domainName=example.org port=80 eMailAddress=banon@dpi.inpe.br password=12xY3z-$name
            value actorID > $name; done
         post verb=RegisterDocument actorID=$(< hermes) password=12xY3z-hermes documentID=3D446S8B8W/34U55T2 originalDocument=yes \\
            'documentURL=http://hermes.example.org/a%20b?c=d&e' documentLastUpdate=2008-07-17T17:22:06-03:00 fingerprint=d41d8cd98f00b204e9800998ecf8427e \\
            metadataURL=http://hermes.example.org/m metadataLastUpdate=2008-07-17T17:44:57-03:00 metadataFormat=oai_dc metadataLanguage=pt-BR
         value documentID > document
         post verb=RegisterDocument actorID=$(< hermes) password=12xY3z-hermes documentID=example.org/hermes@80/2009/01.01.01.01 originalDocument=yes \\
            'documentURL=http://hermes.example.org/own' documentLastUpdate=2008-07-17T17:22:06-03:00",
    );
    fixture
}

/// All seven verbs, by GET and by POST, with the answers that they give.
#[test]
fn the_seven_verbs() {
    let fixture = fixture();
    fixture.prints(
        "grep -cE '^example.org/hermes@80/20[0-9]{2}/[0-9.]*$' hermes; cat document",
        "1\n3D446S8B8W/34U55T2",
    );
    fixture.prints(
        "ask verb=RegisterActor computerName=hermes domainName=example.org port=80 eMailAddress=x@example.org password=12xY3z-hermes | sed \"s|$(< hermes)|HERMES|\"
         ask verb=ChangePassword actorID=$(< hermes) password=12xY3z-hermes newPassword=a2xY3z | cut -d ' ' -f 1,2
         post verb=ChangeEMailAddress actorID=$(< hermes) password=a2xY3z newEmailAddress=banon@iconet.com.br | cut -d ' ' -f 1,2
         post verb=RegisterDocument actorID=$(< apollo) password=12xY3z-apollo documentID=$(< document) documentURL=http://apollo.example.org/a documentLastUpdate=2009-01-01T00:00:00Z
         ask verb=DisplayIDRegistration actorID=$(< apollo) password=12xY3z-apollo documentID=$(< document) > /dev/null
         xmllint --xpath 'count(//actor)' answer; value 'actor[1]/documentURL'; value 'actor[1]/originalDocument'; value 'actor[2]/actorID' | cmp - apollo && echo same
         post verb=ChangeActor actorID=$(< hermes) password=a2xY3z documentID=$(< document) newActorID=$(< apollo) | cut -d ' ' -f 1,2
         post verb=DeleteDocumentRegistration actorID=$(< hermes) password=a2xY3z documentID=$(< document) | cut -d ' ' -f 1,2
         post verb=DeleteDocumentRegistration actorID=$(< apollo) password=12xY3z-apollo documentID=$(< document) | cut -d ' ' -f 1,2",
        "200 actorID HERMES\n200 confirmationMessage\n200 confirmationMessage\n200 documentID 3D446S8B8W/34U55T2\n2\nhttp://hermes.example.org/a%20b?c=d&e\nyes\nsame\n\
         200 confirmationMessage\n200 confirmationMessage\n200 confirmationMessage",
    );
}

/// A document that no Archive holds is had where its actor says; its last edition is the next one that is
/// registered, its metadata those in the reader's language.
#[test]
fn registered_documents_are_resolved() {
    let fixture = fixture();
    fixture.prints(
        "to() { curl -s -o body -w '%{http_code} %{redirect_url}\\n' \"${@:2}\" \"$U/3D446S8B8W/34U55T2$1\"; }
         post verb=RegisterDocument actorID=$(< apollo) password=12xY3z-apollo documentID=$(< document) documentURL=http://apollo.example.org/a documentLastUpdate=2009-01-01T00:00:00Z > /dev/null
         to ''; to '!'; to ':'; to ':(oai_dc)'; to ':(BibINPE)'; to /file; to '?ibiurl.verblist=GetFileList'
         post verb=RegisterDocument actorID=$(< hermes) password=12xY3z-hermes documentID=$(< document) \\
            metadataURL=http://hermes.example.org/en metadataLastUpdate=2008-07-17T17:44:57-03:00 metadataLanguage=en \\
            metadataURL=http://hermes.example.org/pt metadataLastUpdate=2008-07-17T17:44:57-03:00 metadataLanguage=pt-BR \\
            nextEditionURL=http://hermes.example.org/next > /dev/null
         to ''; to '!'; to ':' -H 'Accept-Language: pt'; to ':' -H 'Accept-Language: fr, en'; to '?ibiurl.requireditemstatus=Original'",
        "302 http://hermes.example.org/a%20b?c=d&e\n302 http://hermes.example.org/a%20b?c=d&e\n\
         302 http://hermes.example.org/m\n302 http://hermes.example.org/m\n404 \n404 \n404 \n\
         302 http://apollo.example.org/a\n302 http://hermes.example.org/next\n302 http://hermes.example.org/pt\n302 http://hermes.example.org/en\n404 ",
    );
}

/// Any user may register a document: where an Archive knows the item, or may know it, a registration leads
/// no reader elsewhere.
#[test]
fn the_word_of_an_archive_counts() {
    let ibi = "ibi {ibip 3D446S8B8W/34U55T2} contenttype Data urlkey 1234567890";
    let original = |number: u32| format!("{ibi} state Original url http://a{number}.example.org/x");
    for (answers, expected) in [
        (vec![String::new()], "302 http://hermes.example.org/own"),
        (
            vec![format!("{ibi} state Copy url http://a.example.org/x")],
            "404 ",
        ),
        (vec![ibi.to_owned()], "404 "),
        (vec![format!("{ibi} state Deleted")], "410 "),
        (vec!["{{{".to_owned()], "503 "),
        (vec![original(1), original(2)], "409 "),
    ] {
        let env = TestEnv::new();
        let registry = registry(&env, "r.db");
        for (number, answer) in answers.into_iter().enumerate() {
            Stub::start(number, move |_| Reply::Text(answer.clone())).include(&registry);
        }
        scene_in(env).prints(
            "curl -s -o body -w '%{http_code} %{redirect_url}' \"$U/example.org/hermes@80/2009/01.01.01.01?ibiurl.requireditemstatus=Original\"",
            expected,
        );
    }
}

/// Requests that are refused, in XML, with status 400, and requests that never get so far.
#[test]
fn refusals() {
    let fixture = scene_in(TestEnv::new().with_index_file());
    fixture.prints(
        "no() { ask \"$@\" | cut -d ' ' -f 1,2; }
         no verb=RegisterActor computerName=hermes domainName=example.org port=80 eMailAddress=x@example.org password=another
         no verb=ChangePassword actorID=$(< hermes) password=wrong1 newPassword=a2xY3z
         no verb=DisplayIDRegistration actorID=$(< hermes) password=12xY3z-hermes documentID=3D446S8B8W/34U55T3
         no verb=RegisterDocument actorID=$(< apollo) password=12xY3z-apollo documentID=$(< document) originalDocument=yes documentURL=http://apollo.example.org/a documentLastUpdate=2009-01-01T00:00:00Z
         no verb=RegisterDocument actorID=$(< apollo) password=12xY3z-apollo documentURL=http://elsewhere.invalid/a documentLastUpdate=2009-01-01T00:00:00Z
         no verb=Nonsense; no verb=RegisterActor",
        &["400 errorMessage"; 7].join("\n"),
    );
    fixture.prints(
        "post verb=ChangeActor actorID=$(< hermes) password=12xY3z-hermes documentID=$(< document) newActorID=$(< apollo) > /dev/null; value errorMessage | tee message | grep -c \"$(< apollo)\"
         cat r.db* | grep -ac 12xY3z || true; cat r.db* | grep -ao 'argon2id' | sort -u
         curl -s -o /dev/null -w '%{http_code} ' -X POST -H 'Content-Type: text/plain' -d x $U/
         head -c 600000 /dev/zero | tr '\\0' a | curl -s -o /dev/null -w '%{http_code} ' -d @- $U/
         Q='verb=RegisterActor&computerName=a&domainName=b.org&port=80&eMailAddress=a@b&password=12xY3z'
         curl -s -o /dev/null -w '%{http_code} ' -I \"$U/?$Q\"; curl -s -o /dev/null -w '%{http_code} ' -d \"${Q/12xY3z/another}\" $U/
         curl -s -o /dev/null -w '%{http_code} ' -d verb=x $U/3D446S8B8W/34U55T2; curl -s -o /dev/null -w '%{http_code}' \"$U/?verb=%\"",
        "1\n0\nargon2id\n415 413 405 200 405 400",
    );
}
