//! The Archive service (ibi-resolution(7)), tested with the examples of its documents.

use super::served::Served;
use crate::support::TestEnv;

/// The Archive of the documents' examples 7.2, 8.1 and 8.2, as a tree that is taken over.
const DOCUMENTS: &str = r#"
    here=sid.inpe.br/mtc-m18@80
    item() { mkdir -p S/col/$1/doc; { echo "ibi {$2}"; echo "ibi.archiveservice {rep $here/2008/03.17.15.17}"
        shift 2; printf '%s\n' "$@"; } > S/col/$rep/.ibi; }
    file() { echo content > "S/col/$rep/doc/$1"; touch -d "$2" "S/col/$rep/doc/$1" S/col/$rep/doc S/col/$rep/.ibi; }
    rep=$here/2008/03.17.15.17;    item $rep "rep $rep"
    rep=$here/2009/07.21.13.23;    item $rep "rep $rep ibip 8JMKD3MGP8W/35MME4E" 'language en' 'target {CCSDS%20643.0-B-1.pdf}' \
        "ibi.metadata {rep $rep.47}" "ibi.translation(pt) {rep $here/2009/08.25.19.43}"
    file 'CCSDS 643.0-B-1.pdf' 2009-07-21T13:23:45Z
    rep=$here/2009/08.25.19.43;    item $rep "rep $rep" 'language pt' 'target RTC-07.pdf' "ibi.translationof {rep $here/2009/07.21.13.23}"
    file RTC-07.pdf 2011-09-22T14:45:11Z
    rep=$here/2009/07.21.13.23.47; item $rep "rep $rep" 'target metadata.cgi' "ibi.metadataof {rep $here/2009/07.21.13.23}"
    file metadata.cgi 2014-04-04T17:39:54Z
    rep=$here/2009/07.21.14.43;    item $rep "rep $rep ibip 8JMKD3MGP8W/35MMLL8" 'target {CCSDS%20650.0-B-1.pdf}' \
        'ibi.nextedition {rep sid.inpe.br/mtc-m18/2012/07.12.18.08}'
    file 'CCSDS 650.0-B-1.pdf' 2009-07-21T14:43:31Z
    ibifs init --adopt S --host mtc-m18.sid.inpe.br --port 80 --service $here/2008/03.17.15.17 > /dev/null"#;

const SERVICE: &str = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";

fn documents() -> (TestEnv, Served) {
    let env = TestEnv::new();
    env.sh(DOCUMENTS);
    let served = Served::start(&env, "S --address mtc-m16c.sid.inpe.br");
    (env, served)
}

/// Returns the answer of the service, without the key, which is new each time.
fn answer(env: &TestEnv, served: &Served, query: &str) -> String {
    let url = format!("{}/{SERVICE}?servicesubject={query}", served.url);
    env.sh(&format!(
        "curl -sf '{url}' | tr -d '\\r' | sed '/^urlkey [0-9]\\{{10,\\}}-[0-9]\\{{10,\\}}$/d'"
    ))
}

/// The default file of source document 004, example 4.2: its name is Latin-1. It is found by whatever way it
/// was given: an attribute, the sidecar, a table.
#[test]
fn a_default_file_whose_name_is_not_utf8() {
    let env = TestEnv::new().with_a();
    env.sh("mint A item > item; mint A two > two; D=A/$(< item)/doc; N=$'Relat\\xf3rio Final.pdf'
            echo x > $D/other; echo final > \"$D/$N\"; echo x > A/$(< two)/doc/other; cp \"$D/$N\" A/$(< two)/doc/
            setfattr -n user.ibi.target -v \"$N\" A/$(< item)
            sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A.store/archive.ibi > service");
    env.prints(
        "grep target A/$(< item)/.ibi",
        "target Relat%F3rio%20Final.pdf",
    );
    env.prints(
        "getfattr --only-values -n user.ibi.target A/$(< item) | od -An -c | tr -d ' \n'",
        "Relat363rioFinal.pdf",
    );
    env.sh("printf 'rep,target\n%s,Relat%%f3rio Final.pdf\n' $(< two) > table.csv; ibifs import A table.csv");
    let served = Served::start(&env, "A.store");
    for item in ["item", "two"] {
        let url = &served.url;
        env.prints(
            &format!(
                "curl -s \"{url}/$(< service)?servicesubject=urlRequest&parsedibiurl.ibi=$(< {item})\" |
                     tr -d '\\r' | sed -n 's/^url .*\\/doc/doc/p'; curl -sL {url}/$(< {item})"
            ),
            "doc/Relat%F3rio%20Final.pdf\nfinal",
        );
    }
}

/// The acknowledgment and the request that source document 004 prints (examples 6.9 and 4.2), whose values
/// are percent-encoded Latin-1.
#[test]
fn values_need_not_be_utf8() {
    let (env, served) = documents();
    for (query, printed) in [
        (
            "servicesubject=acknowledgment&urlkey=1-1&url=http://x.br/doc/Relat%f3rio%20Final.pdf",
            "notice {acknowledgment received}",
        ),
        (
            "servicesubject=urlRequest&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E&parsedibiurl.filepath=/Relat%f3rio.pdf",
            "archiveaddress mtc-m16c.sid.inpe.br",
        ),
    ] {
        env.prints(
            &format!(
                "curl -sf '{}/{SERVICE}?{query}' | tr -d '\\r' | sed -n 1p",
                served.url
            ),
            printed,
        );
    }
}

/// Pairs are separated by CRLF (ibi-resolution(7), List of pairs), the key among them.
#[test]
fn pairs_are_separated_by_crlf() {
    let (env, served) = documents();
    let query = "urlRequest&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E";
    env.prints(
        &format!(
            "curl -sf '{}/{SERVICE}?servicesubject={query}' > answer; grep -c urlkey answer
             test $(grep -c $'\\r$' answer) = $(wc -l < answer) && echo all; tail -c 1 answer | tr -d '[0-9]' | wc -c
             curl -sf '{}/{SERVICE}?servicesubject=inclusionConfirmationRequest' | od -An -c | tr -d ' '",
            served.url, served.url
        ),
        "1\nall\n0\nconfirmationyes",
    );
}

/// The answer of the documents' example 7.3, whole: all translations, each by its language.
#[test]
fn a_verb_keeps_its_relation() {
    let (env, served) = documents();
    let query = "urlRequest&clientinformation.ipaddress=150.163.2.175&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E\
        &parsedibiurl.verblist=GetTranslation";
    assert_eq!(
        answer(&env, &served, query),
        "archiveaddress mtc-m16c.sid.inpe.br
contenttype.translation(en) Data
contenttype.translation(pt) Data
ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.13.23 ibip 8JMKD3MGP8W/35MME4E}
ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}
ibi.platformsoftware {}
ibi.translation(en) {rep sid.inpe.br/mtc-m18@80/2009/07.21.13.23 ibip 8JMKD3MGP8W/35MME4E}
ibi.translation(pt) {rep sid.inpe.br/mtc-m18@80/2009/08.25.19.43}
state.translation(en) Original
state.translation(pt) Original
timestamp.translation(en) 2009-07-21T13:23:45Z
timestamp.translation(pt) 2011-09-22T14:45:11Z
url.translation(en) http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009/07.21.13.23/doc/CCSDS%20643.0-B-1.pdf
url.translation(pt) http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009/08.25.19.43/doc/RTC-07.pdf"
    );
}

/// Of the documents' example 7.2, each pair is there that does not name their own program; ours knows
/// more relations.
#[test]
fn without_verbs_all_is_answered() {
    let (env, served) = documents();
    let messages = answer(
        &env,
        &served,
        "urlRequest&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E",
    );
    let place = "http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009";
    let data = "CCSDS%20643.0-B-1.pdf";
    for relation in ["", ".lastedition", ".translation(en)"] {
        for pair in [
            format!("contenttype{relation} Data"),
            format!("state{relation} Original"),
            format!("timestamp{relation} 2009-07-21T13:23:45Z"),
            format!("url{relation} {place}/07.21.13.23/doc/{data}"),
            format!(
                "ibi{relation} {{rep sid.inpe.br/mtc-m18@80/2009/07.21.13.23 ibip 8JMKD3MGP8W/35MME4E}}"
            ),
        ] {
            assert!(
                messages.lines().any(|line| line == pair),
                "{pair}\nis not in\n{messages}"
            );
        }
    }
    for relation in [
        ".metadata",
        ".lastedition.metadata",
        ".metadata.translation",
        ".metadata(oai_dc)",
        ".lastedition.metadata(oai_dc)",
    ] {
        let url = if relation.ends_with("(oai_dc)") {
            // The Dublin Core of this item; theirs was of a program.
            "http://mtc-m16c.sid.inpe.br/sid.inpe.br/mtc-m18@80/2009/07.21.13.23:(oai_dc)"
                .to_owned()
        } else {
            format!("{place}/07.21.13.23.47/doc/metadata.cgi")
        };
        // Dublin Core is read from the metadata item.
        let time = "2014-04-04T17:39:54Z";
        for pair in [
            format!("contenttype{relation} Metadata"),
            format!("state{relation} Original"),
            format!("timestamp{relation} {time}"),
            format!("url{relation} {url}"),
            format!("ibi{relation} {{rep sid.inpe.br/mtc-m18@80/2009/07.21.13.23.47}}"),
        ] {
            assert!(
                messages.lines().any(|line| line == pair),
                "{pair}\nis not in\n{messages}"
            );
        }
    }
    assert!(
        messages.contains("url.translation(pt) http://"),
        "{messages}"
    );
}

/// The answers of the documents' examples 8.1 and 8.2 (the first): an item whose next edition is
/// elsewhere. Ours names the next edition also where the last is not requested.
#[test]
fn an_edition_held_elsewhere_is_named() {
    let (env, served) = documents();
    let query = "urlRequest&clientinformation.ipaddress=172.16.44.200%20150.163.68.1\
        &parsedibiurl.ibi=8JMKD3MGP8W/35MMLL8&parsedibiurl.verblist=";
    let known = "archiveaddress mtc-m16c.sid.inpe.br
ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}
ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}
ibi.nextedition {rep sid.inpe.br/mtc-m18/2012/07.12.18.08}
ibi.platformsoftware {}";
    assert_eq!(
        answer(
            &env,
            &served,
            &format!("{query}GetLastEdition%20GetMetadata(oai_dc)")
        ),
        known
    );
    let plain = answer(&env, &served, query);
    let more = "contenttype Data
state Original
timestamp 2009-07-21T14:43:31Z
url http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009/07.21.14.43/doc/CCSDS%20650.0-B-1.pdf";
    let mut expected: Vec<&str> = known.lines().chain(more.lines()).collect();
    expected.sort_unstable();
    assert_eq!(plain.lines().collect::<Vec<_>>(), expected);
    // A description in a format is one document, to which the list of its files leads.
    let document = answer(
        &env,
        &served,
        "urlRequest&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E&parsedibiurl.verblist=GetMetadata(oai_dc)%20GetFileList",
    );
    let url = "url.metadata(oai_dc) http://mtc-m16c.sid.inpe.br/sid.inpe.br/mtc-m18@80/2009/07.21.13.23:(oai_dc)";
    assert!(document.lines().any(|line| line == url), "{document}");
    let listed = answer(&env, &served, &format!("{query}GetFileList"));
    assert!(
        listed.contains("url http://mtc-m16c.sid.inpe.br/sid.inpe.br/mtc-m18@80/2009/07.21.14.43?ibiurl.verblist=GetFileList"),
        "{listed}"
    );
    let other = answer(
        &env,
        &served,
        &format!("{query}&parsedibiurl.filepath=/CCSDS%20650.0-B-1.pdf"),
    );
    assert_eq!(other, plain);
    let none = answer(
        &env,
        &served,
        &format!("{query}&parsedibiurl.filepath=/nothing.pdf"),
    );
    assert_eq!(none, known);
}

/// Confirmation, acknowledgment and what is not known; a removed item says that it was. All as a list
/// of pairs in plain text.
#[test]
fn the_other_subjects() {
    let (env, served) = documents();
    let says = |query: &str| answer(&env, &served, query);
    assert_eq!(says("inclusionConfirmationRequest"), "confirmation yes");
    assert_eq!(
        says("acknowledgment&urlkey=1424636122-5331490054869684"),
        "notice {acknowledgment received}"
    );
    assert_eq!(says("urlRequest&parsedibiurl.ibi=LK47B6W/362SFKH"), "");
    env.sh(
        "mkdir M; ibifs mount S M; rm -r M/sid.inpe.br/mtc-m18@80/2009/08.25.19.43; date -u +%Y-%m-%d > today",
    );
    let removed = says("urlRequest&parsedibiurl.ibi=sid.inpe.br/mtc-m18@80/2009/08.25.19.43");
    let names: Vec<&str> = removed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        names,
        [
            "archiveaddress",
            "ibi",
            "ibi.archiveservice",
            "ibi.platformsoftware",
            "state",
            "timestamp"
        ]
    );
    assert!(removed.contains("state Deleted"), "{removed}");
    // Every change by the mount is seen at once.
    env.sh("new=$(ibifs mint M --translation-of 8JMKD3MGP8W/35MME4E --lang fr | head -1); echo $new > new");
    assert!(
        says("urlRequest&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E").contains("ibi.translation(fr) ")
    );
    let url = format!(
        "{}/{SERVICE}?servicesubject=inclusionConfirmationRequest",
        served.url
    );
    let head = env.sh(&format!(
        "curl -sI '{url}' | tr -d '\\r' | grep -i ^content-type"
    ));
    assert_eq!(head.to_ascii_lowercase(), "content-type: text/plain");
    env.sh("ibifs umount M");
}

/// A text that is not an identifier is an unknown one: the answer is empty, and the log says nothing.
#[test]
fn what_is_no_identifier_is_unknown() {
    let env = TestEnv::new();
    env.sh(DOCUMENTS);
    let served = Served::start(&env, "S 2> log");
    for ibi in [
        "zzz",
        "",
        "sid.inpe.br/a/2009/13.16.17.46",
        "8JMKD3MGP8W/35MME4E!",
        "ibi:8JMKD3MGP8W/35MME4E",
    ] {
        let query = format!("servicesubject=urlRequest&parsedibiurl.ibi={ibi}");
        env.prints(
            &format!(
                "curl -s -w '%{{http_code}}' '{}/{SERVICE}?{query}'",
                served.url
            ),
            "200",
        );
    }
    drop(served);
    env.prints("cat log", "");
}

/// An access counts for the item that is returned to the reader, by the acknowledgment.
#[test]
fn an_access_counts_for_the_item_that_is_returned() {
    let (env, served) = documents();
    let here = "sid.inpe.br/mtc-m18@80/2009";
    let acknowledge = |more: &str| {
        let key = env.sh(&format!(
            "curl -sf '{}/{SERVICE}?servicesubject=urlRequest&parsedibiurl.ibi={here}/07.21.13.23' |
                 tr -d '\\r' | sed -n 's/^urlkey //p'",
            served.url
        ));
        let query = format!("acknowledgment&urlkey={key}{more}");
        assert_eq!(
            answer(&env, &served, &query),
            "notice {acknowledgment received}"
        );
    };
    let accesses = |item: &str| {
        env.sh(&format!(
            "curl -sf -H 'Accept: application/json' '{}/{here}/{item}' | jq .accesses",
            served.url
        ))
    };
    acknowledge(&format!("&ibi=rep%20{here}/08.25.19.43"));
    acknowledge(&format!(
        "&ibi=rep%20{here}/07.21.13.23%20ibip%208JMKD3MGP8W/35MME4E"
    ));
    acknowledge(&format!("&ibi={here}/07.21.13.23.47"));
    // Without one that is held here, it counts for the requested item.
    acknowledge("&ibi=rep%20example.org/x/2009/01.01.01.01");
    acknowledge("");
    assert_eq!(
        [
            "08.25.19.43",
            "07.21.13.23",
            "07.21.13.23.47",
            "07.21.14.43"
        ]
        .map(accesses),
        ["1", "3", "1", "0"]
    );
}

/// `timestamp` is the newest change of anything in the item.
#[test]
fn the_timestamp_is_of_the_newest_change() {
    let (env, served) = documents();
    env.sh("mkdir M; ibifs mount S M");
    let here = "sid.inpe.br/mtc-m18@80/2009";
    let old = "2009-07-21T13:23:45Z 2014-04-04T17:39:54Z 2014-04-04T17:39:54Z";
    let times = || {
        let all = answer(
            &env,
            &served,
            &format!("urlRequest&parsedibiurl.ibi={here}/07.21.13.23"),
        );
        let of = |name: &str| {
            let line = all.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        [
            of("timestamp "),
            of("timestamp.metadata "),
            of("timestamp.metadata(oai_dc) "),
        ]
        .join(" ")
    };
    assert_eq!(times(), old);
    let item = format!("M/{here}/07.21.13.23");
    let mut last = old.to_owned();
    for (number, script) in [
        format!("mkdir {item}/doc/sub; echo 1 > {item}/doc/sub/deep"),
        format!("echo 2 > {item}/doc/sub/deep; touch -d 2031-02-03T04:05:06Z {item}/doc/sub/deep"),
        format!("echo 2 > {item}/doc/other; touch -d 2032-02-03T04:05:06Z {item}/doc/other"),
        format!("touch -d 2033-02-03T04:05:06Z {item}.47/doc/metadata.cgi"),
    ]
    .iter()
    .enumerate()
    {
        env.sh(script);
        let now = times();
        assert_ne!(now, last, "{number}: {script}");
        last = now;
    }
    assert_eq!(
        last,
        "2032-02-03T04:05:06Z 2033-02-03T04:05:06Z 2033-02-03T04:05:06Z"
    );
    // So it is in an item of many files.
    env.sh(&format!(
        "seq -f '{item}/doc/sub/%.0f' 300 | xargs touch -d 2020-01-01T00:00:00Z; touch -d 2035-02-03T04:05:06Z {item}/doc/sub/9"
    ));
    assert!(times().starts_with("2035-02-03T04:05:06Z "));
    env.sh("ibifs umount M");
}

/// Malformed requests are refused with a sentence.
#[test]
fn malformed_requests_get_a_sentence() {
    let (env, served) = documents();
    for (query, sentence) in [
        ("urlRequest", "the query has no parsedibiurl.ibi"),
        (
            "x",
            "servicesubject 'x' is not one of urlRequest, acknowledgment and inclusionConfirmationRequest",
        ),
        (
            "urlRequest&parsedibiurl.ibi=a&parsedibiurl.ibi=b",
            "'parsedibiurl.ibi' is in the query twice",
        ),
        (
            "urlRequest&parsedibiurl.ibi=%",
            "'%' in the query is not percent-encoded UTF-8; write % as %25",
        ),
        (
            "urlRequest&parsedibiurl.ibi=8JMKD3MGP8W/35MME4E&parsedibiurl.verblist=Get",
            "verb 'Get' at byte 1 of verbs 'Get' is not one of GetLastEdition, GetTranslation, GetMetadata, GetFileList and GetFormats",
        ),
    ] {
        let url = format!("{}/{SERVICE}?servicesubject={query}", served.url);
        let said = env.sh(&format!("curl -s -w '%{{http_code}}' '{url}'"));
        assert_eq!(said, format!("{sentence}\n400"));
    }
    let url = format!("{}/{SERVICE}", served.url);
    assert_eq!(
        env.sh(&format!(
            "curl -s -o /dev/null -w '%{{http_code}}' -X DELETE '{url}'"
        )),
        "405"
    );
}
