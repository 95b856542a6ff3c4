//! The promises of metadata as a whole: its output is valid, and no input can harm it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ibifs::formats::metadata::{
    DublinCore, Element, MAX_BYTES, MetadataError, RecordFormat, read_record,
};

use crate::support::{Rng, processor_time};

type Read = fn(&[u8]) -> Result<DublinCore, MetadataError>;

const READERS: [(&str, Read); 10] = [
    ("RIS", |bytes| core_of(RecordFormat::Ris, bytes)),
    ("JSON", |bytes| core_of(RecordFormat::Json, bytes)),
    ("CITATION.cff", |bytes| core_of(RecordFormat::Cff, bytes)),
    ("DataCite", |bytes| core_of(RecordFormat::Datacite, bytes)),
    ("MODS", |bytes| core_of(RecordFormat::Mods, bytes)),
    ("DSpace", |bytes| core_of(RecordFormat::Dspace, bytes)),
    ("oai_dc", DublinCore::from_oai_dc),
    ("BibTeX", DublinCore::from_bibtex),
    ("refer", DublinCore::from_refer),
    ("text", DublinCore::parse_text),
];

fn core_of(format: RecordFormat, bytes: &[u8]) -> Result<DublinCore, MetadataError> {
    Ok(format.read(bytes)?.core)
}

/// Records in the formats of other programs.
const OTHERS: [&str; 7] = [
    "TY  - JOUR\r\nTI  - Rain in Brazil\r\nAU  - Silva, Ana\r\nDA  - 2010/03/15/\r\nL1  - file:///x.pdf\r\nER  - \r\n",
    "[{\"id\":\"a\",\"type\":\"book\",\"title\":\"T\",\"author\":[{\"family\":\"Silva\",\"given\":\"Ana\"}],\
        \"issued\":{\"date-parts\":[[\"2010\",3]]},\"DOI\":\"10.1/x\"}]",
    "{\"@context\":\"https://schema.org\",\"@type\":\"Dataset\",\"name\":\"T\",\"creator\":{\"@type\":\"Person\",\
        \"name\":\"A\",\"@id\":\"https://orcid.org/0000-0002-1825-0097\"},\"datePublished\":\"2010\",\"license\":\"MIT\"}",
    "cff-version: 1.2.0\ntitle: \"T\"\nauthors:\n  - family-names: Silva\n    given-names: >-\n      Ana\n\
        keywords: [a, 'b']\ndate-released: 2010-03-15\n",
    "<resource xmlns='http://datacite.org/schema/kernel-4'><titles><title>T</title></titles><creators><creator>\
        <creatorName nameType='Personal'>Silva, Ana</creatorName></creator></creators><publicationYear>2010</publicationYear>\
        <dates><date dateType='Issued'>2010-03-15</date></dates></resource>",
    "<mods xmlns='http://www.loc.gov/mods/v3'><titleInfo><nonSort>The</nonSort><title>T</title></titleInfo><name type='personal'>\
        <namePart type='family'>Silva</namePart></name><originInfo><dateIssued>2010</dateIssued></originInfo></mods>",
    "<dublin_core><dcvalue element='title' qualifier='none'>T</dcvalue><dcvalue element='date' qualifier='issued'>2010</dcvalue>\
        <dcvalue element='contributor' qualifier='author'>Silva, Ana</dcvalue></dublin_core>",
];

const OAI_DC: &str = "<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE x [<!ENTITY e 'v'>]>\n<o:dc \
    xmlns:o='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:d='http://purl.org/dc/elements/1.1/'>\n<d:title \
    xml:lang='pt'>A &amp; <![CDATA[B]]> &#xe9;</d:title><!-- c --><d:creator>São</d:creator><d:date/></o:dc>\n";
const BIBTEX: &str = "@string{j = \"Jour{n}al\"}\n@comment{x}\n@article{k:1, title = {S{\\~a}o \\'{\\i} $x^2$ -- ``a''},\n\
    author = {Ana da Silva and {INPE} and Banon, G.}, journal = j # { B }, year = 2009, month = 1 # \"~\" # feb,\n\
    keywords = {a; b, c}, doi = {10.1/x\\_y}, isbn = {85-1}, date = {2009-02-16/..}}\n";
const REFER: &str = "%0 Book\n%A Silva, Ana\n%A Ana da Silva\n%T São\n  José\n%D 2009\n%8 fev. 3\n%K a; b\nc\n%@ 12-3\n\
    %R doi:10.1/2\n\n%T next\n";
const TEXT: &str = "\u{feff}# remark\ndc:title: São\n  José\n\nCREATOR: b\r\ndate:2009\n";

/// Whether the schema of OAI-PMH accepts a document; what it says against it otherwise.
fn validate(xml: &str) -> Result<(), String> {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema/oai_dc.xsd");
    let mut child = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(schema)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("xmllint is installed (package libxml2-utils)");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(xml.as_bytes())
        .expect("xmllint reads its input");
    let output = child.wait_with_output().expect("xmllint ends");
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn what_is_written_is_valid() {
    let mut full = DublinCore::default();
    for element in Element::ALL.into_iter().rev() {
        for value in [
            "<&>\"'",
            "]]>",
            "São José — 日本 😀",
            "a\u{0}\u{1}\u{b}\u{1f}\u{7f}\u{85}\u{fffe}b",
            "&#0; &lt;",
        ] {
            full.push(element, value);
        }
    }
    let records = [
        Ok(DublinCore::default()),
        Ok(full),
        DublinCore::from_oai_dc(OAI_DC.as_bytes()),
        DublinCore::from_bibtex(BIBTEX.as_bytes()),
        DublinCore::from_refer(REFER.as_bytes()),
        DublinCore::parse_text(TEXT.as_bytes()),
    ];
    for record in records {
        let record = record.expect("a good record");
        let xml = record.to_oai_dc();
        assert_eq!(validate(&xml), Ok(()), "{xml}");
        assert_eq!(
            DublinCore::from_oai_dc(xml.as_bytes()).ok(),
            Some(record.clone())
        );
        assert_eq!(
            DublinCore::parse_text(record.to_text().as_bytes()).ok(),
            Some(record)
        );
    }
}

/// The schema would not be worth much if it accepted everything.
#[test]
fn the_schema_refuses_what_is_not_oai_dc() {
    let mut record = DublinCore::default();
    record.push(Element::Title, "A");
    let good = record.to_oai_dc();
    let lang = good.replace("<dc:title>", "<dc:title xml:lang=\"pt-BR\">");
    assert_eq!(validate(&lang), Ok(()));
    let cases = [
        good.replace("dc:title", "dc:author"),
        good.replace("oai_dc:dc", "oai_dc:record"),
        good.replace("<dc:title>", "<dc:title lang=\"pt\">"),
        good.replace(">A<", "><dc:date/><"),
        good.replace("purl.org/dc/elements/1.1/", "purl.org/dc/terms/"),
        good.replace(">A<", ">A\u{1}<"),
    ];
    for xml in cases {
        assert!(validate(&xml).is_err(), "{xml}");
    }
}

/// Reads with every reader; what it reads must be valid to write, and none may take long.
#[track_caller]
fn survives(name: &str, bytes: &[u8]) {
    for (reader, read) in READERS {
        let start = processor_time();
        if let Ok(record) = read(bytes) {
            let xml = record.to_oai_dc();
            // A text close to the limit becomes larger than the limit when written.
            let again = (xml.len() <= MAX_BYTES).then(|| DublinCore::from_oai_dc(xml.as_bytes()));
            let same = again.is_none_or(|again| again.is_ok_and(|again| again == record));
            assert!(same, "{reader}, {name}: reads back");
        }
        // Generous for a build without optimization; what is quadratic takes minutes.
        let took = processor_time() - start;
        assert!(took < Duration::from_secs(10), "{reader}, {name}: {took:?}");
    }
    let _ = read_record(name, bytes);
}

#[test]
fn hostile_input_is_survived() {
    let laughs = (1..10).fold(
        String::from("<!DOCTYPE dc [<!ENTITY l0 'lol'>"),
        |text, number| {
            let inner = format!("&l{};", number - 1).repeat(10);
            format!("{text}<!ENTITY l{number} '{inner}'>")
        },
    ) + "]><dc xmlns='http://purl.org/dc/elements/1.1/'><title>&l9;</title></dc>";
    let error = DublinCore::from_oai_dc(laughs.as_bytes()).map_err(|error| error.to_string());
    assert!(error.is_err_and(|sentence| sentence.contains("the unknown entity 'l9'")));
    let dc = "<dc xmlns='http://purl.org/dc/elements/1.1/'>";
    let many = |piece: &str| piece.repeat(MAX_BYTES / piece.len() - 1);
    let fill = |start: &str, piece: &str, end: &str| {
        format!(
            "{start}{}{end}",
            piece.repeat((MAX_BYTES - start.len() - end.len()) / piece.len())
        )
    };
    let cases = [
        ("empty", String::new()),
        ("billion laughs", laughs),
        (
            "external entity",
            format!(
                "<!DOCTYPE dc [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>{dc}<title>&x;</title></dc>"
            ),
        ),
        ("deep lists of JSON", many("[")),
        ("deep members of JSON", fill("", "{\"a\":", "")),
        ("deep flow lists of YAML", fill("title: ", "[", "")),
        ("deep flow maps of YAML", fill("title: ", "{a: ", "")),
        ("deep lists of YAML", fill("title:\n", "- ", "")),
        (
            "anchors of YAML",
            fill("title: &a [x, x]\nkeywords: [", "*a,", "]\n"),
        ),
        ("many keys of YAML", fill("cff-version: 1\n", "? a\n", "")),
        ("quotes of YAML", fill("title: \"", "\\n", "")),
        ("many tags of RIS", fill("TY  - JOUR\n", "AU  - a, b\n", "")),
        (
            "many authors",
            fill(
                "[{\"title\":\"t\",\"type\":\"book\",\"author\":[",
                "{\"family\":\"a\"},",
                "{}]}]",
            ),
        ),
        (
            "many values of DSpace",
            fill(
                "<dublin_core>",
                "<dcvalue element='date' qualifier='issued'>1</dcvalue>",
                "</dublin_core>",
            ),
        ),
        ("unterminated tag", format!("{dc}<title")),
        ("unterminated comment", format!("{dc}<!-- ")),
        ("unterminated CDATA", format!("{dc}<title><![CDATA[")),
        ("unterminated document type", "<!DOCTYPE dc [".to_string()),
        ("deep XML", format!("{dc}{}", "<title>".repeat(100_000))),
        ("many empty tags", fill(dc, "<title/>", "</dc>")),
        ("many prefixes", fill("<dc ", "xmlns:a='b' ", "/>")),
        ("many attributes", fill(dc, "<title a='1' a='1'/>", "</dc>")),
        (
            "many references",
            fill(&format!("{dc}<title>"), "&#65;", "</title></dc>"),
        ),
        ("many ends", many("</a>")),
        ("many opening signs", many("<")),
        ("NUL bytes", many("\0")),
        ("NUL in XML", format!("{dc}<title>\0</title></dc>")),
        ("braces open", fill("@misc{k, title = ", "{", "")),
        ("braces closed", fill("@misc{k, title = {", "}", "")),
        ("deep TeX", fill("@misc{k, title = {", "\\a{", "")),
        (
            "deep balanced TeX",
            format!(
                "@misc{{k, title = {{{}{}}}}}",
                "\\'{".repeat(100_000),
                "}".repeat(100_000)
            ),
        ),
        (
            "deep names",
            format!(
                "@misc{{k, author = {{{}{}}}}}",
                "{a and ".repeat(50_000),
                "}".repeat(50_000)
            ),
        ),
        ("many accents", fill("@misc{k, title = {", "\\'", "a}}")),
        ("many names", fill("@misc{k, author = {", "a and ", "b}}")),
        (
            "many commas in a name",
            fill("@misc{k, author = {", ",a", "}}"),
        ),
        (
            "many words in a name",
            fill("@misc{k, author = {", "A ", "}}"),
        ),
        (
            "many keywords",
            fill("@misc{k, keywords = {", "1a,2,", "}}"),
        ),
        ("many fields", fill("@misc{k", ", a = 1", "}")),
        (
            "many titles",
            fill("@misc{k, subtitle={b}", ", title = {a}", "}"),
        ),
        ("many languages", fill("@misc{k", ", langid = {a}", "}")),
        ("many strings", fill("", "@string{a = {b}}", "")),
        (
            "string of itself",
            "@string{a = a}@misc{k, title = a}".to_string(),
        ),
        ("many pieces", fill("@misc{k, title = ", "a#", "a}")),
        ("many signs", many("@")),
        ("many entries that are none", many("@a ")),
        ("many comments", many("@comment{")),
        ("many percent signs", fill("@misc{k, ", "%\n", "}")),
        ("quotes", fill("@misc{k, title = \"", "\\\"", "")),
        ("dollars", fill("@misc{k, title = {", "$", "}}")),
        ("many tags", many("%A a b\n")),
        (
            "many tags that differ",
            (0..90_000).map(|number| format!("%K {number}\n")).collect(),
        ),
        ("many lines", many("%A\n\n")),
        ("continued", fill("%T", "\na", "")),
        ("text continued", fill("title:", "\n a", "")),
        (
            "many values",
            (0..80_000)
                .map(|number| format!("title:{number}\n"))
                .collect(),
        ),
        ("white space", many(" \n\t")),
        ("percent", many("%")),
        ("one line", many("a")),
        ("characters of two bytes", many("é")),
    ];
    for (name, text) in cases {
        survives(name, text.as_bytes());
        assert!(text.len() <= MAX_BYTES, "{name} is not even read");
    }
    survives("not UTF-8", &[0xff; 1000]);
    survives(
        "truncated character",
        "title: é".as_bytes().split_last().expect("bytes").1,
    );
    for (reader, read) in READERS {
        let error = read(&vec![b'a'; MAX_BYTES + 1]).expect_err(reader);
        assert!(
            matches!(error, MetadataError::TooLarge { .. }),
            "{reader}: {error}"
        );
    }
}

#[test]
fn any_beginning_of_a_record_is_survived() {
    for good in [OAI_DC, BIBTEX, REFER, TEXT].into_iter().chain(OTHERS) {
        for end in 0..good.len() {
            survives("cut.xml", &good.as_bytes()[..end]);
        }
    }
}

#[test]
fn random_changes_are_survived() {
    let mut random = Rng::from_seed(1);
    let pieces: [&[u8]; 16] = [
        b"{",
        b"}",
        b"\\",
        b"\"",
        b"<",
        b">",
        b"&",
        b";",
        b"@",
        b"%",
        b"#",
        b"\0",
        b"\xff",
        b"<![CDATA[",
        b"\n",
        b"\xc3",
    ];
    let all: Vec<&str> = [OAI_DC, BIBTEX, REFER, TEXT]
        .into_iter()
        .chain(OTHERS)
        .collect();
    for round in 0..6_000 {
        let good = all[round % all.len()];
        let mut bytes = good.as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            let place = random.below(bytes.len());
            match random.below(5) {
                0 => bytes[place] = random.byte(),
                1 => {
                    bytes.remove(place);
                }
                2 => bytes.truncate(place),
                3 => {
                    let from = random.below(bytes.len());
                    let copied = bytes[from..].iter().copied().take(20).collect::<Vec<_>>();
                    bytes.splice(place..place, copied);
                }
                _ => {
                    bytes.splice(
                        place..place,
                        pieces[random.below(pieces.len())].iter().copied(),
                    );
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        survives("changed.bib", &bytes);
    }
}
