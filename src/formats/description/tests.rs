//! What is written is read back, whatever the values are.

use super::*;
use crate::formats::metadata::DublinCore;

/// Values that break a format that does not escape them.
const HOSTILE: &[&str] = &[
    "a } b { c",
    "100% & more_#$~^\\ \\end{document}",
    "say \"so\" and 'so', ``so''",
    "]]> <!-- --> <script>&amp;",
    "a -- b --- c",
    "a\r\nb\tc\u{0}\u{7}",
    "%A %@name @misc{x, title = {y}}",
    "\u{2028}\u{fffe}\u{202e}é日本😀",
    "# comment",
    "{",
    "\\",
    "a,b;c",
];

fn description(record: BibliographicRecord) -> Description {
    let mut description = Description {
        record,
        ibi: "8JMKD3MGP8W/34PGRBS".to_owned(),
        url: "http://urlib.net/8JMKD3MGP8W/34PGRBS".to_owned(),
        target_file: Some("a {b}.pdf".to_owned()),
        related: vec![(
            DescribedRelation::Translation,
            "http://urlib.net/8JMKD3MGP8W/34PGRBT".to_owned(),
        )],
        made_on: (2026, 3, 3),
    };
    let core = &mut description.record.core;
    core.push(Element::Identifier, "8JMKD3MGP8W/34PGRBS");
    description
}

fn full(value: &str) -> Description {
    let mut record = BibliographicRecord::default();
    for element in Element::ALL {
        record.core.push(element, value);
    }
    record.kind = Some(RecordKind::Paper);
    for name in [
        "journal",
        "editor",
        "affiliation",
        "pages",
        "isbn",
        "%z",
        "bad name",
        "x-y",
    ] {
        record.keep(name, value);
    }
    description(record)
}

#[test]
fn words_are_those_of_modifiers() {
    for format in DescriptionFormat::ALL {
        assert_eq!(DescriptionFormat::from_word(format.word()), Some(format));
        assert!(ibi::relation::MetadataFormat::parse(format.word()).is_ok());
        let document = full("A").write(format);
        assert!(document.ends_with('\n'), "{document}");
        let element = full("A").xml_element(format);
        assert_eq!(element.is_some(), format.schema().is_some());
        assert!(element.is_none_or(|element| document.ends_with(&element)));
    }
    for word in ["", "bibinpe", "OAI_DC", "marc21"] {
        assert_eq!(DescriptionFormat::from_word(word), None, "{word}");
    }
}

#[test]
fn the_institute_writes_bibtex_in_a_column() {
    let record = BibliographicRecord::from_refer(
        "%0 Conference Proceedings\n%T Uniform repositories for a digital library\n%A Banon, Gerald J. F.,\n%A INPE,\n\
         %@affiliation INPE\n%D 1998\n%8 1998-09-10\n%I INPE\n%B Anais\n%K IBI, \"URLib\"\n%@group SRE\n%@doi 10.1000/1"
            .as_bytes(),
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        description(record).write(DescriptionFormat::BibInpe),
        r#"@inproceedings{BanonINPE:1998:UnReDi,
         author = "Banon, Gerald J. F. and {INPE}",
    affiliation = "{INPE}",
          title = "Uniform repositories for a digital library",
      booktitle = "Anais",
      publisher = "INPE",
           year = "1998",
          month = "9",
       keywords = "IBI, {"}URLib{"}",
            doi = "10.1000/1",
          group = "SRE",
            ibi = "8JMKD3MGP8W/34PGRBS",
            url = "http://urlib.net/8JMKD3MGP8W/34PGRBS",
     targetfile = "a%20%7Bb%7D.pdf",
  urlaccessdate = "2026, Mar. 03",
}
"#
    );
}

/// The values of these elements in another record.
fn same(one: &DublinCore, other: &DublinCore, elements: &[Element], what: &str) {
    for element in elements {
        let values =
            |core: &DublinCore| core.values(*element).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(values(one), values(other), "{what}");
    }
}

#[test]
fn hostile_values_are_read_back() {
    let elements = [Element::Title, Element::Creator, Element::Publisher];
    for value in HOSTILE {
        let description = full(value);
        let core = &description.record.core;
        for format in [DescriptionFormat::Bibtex, DescriptionFormat::BibInpe] {
            let document = description.write(format);
            let read = BibliographicRecord::from_bibtex(document.as_bytes());
            let read = read.unwrap_or_else(|error| panic!("{error}: {document}"));
            let mut all = elements.to_vec();
            all.extend([Element::Subject, Element::Description, Element::Rights]);
            same(&read.core, core, &all, &document);
            assert_eq!(read.field("journal"), description.record.field("journal"));
            assert_eq!(read.kind, Some(RecordKind::Paper));
        }
        let document = description.write(DescriptionFormat::Refer);
        let read = BibliographicRecord::from_refer(document.as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{error}: {document}"));
        same(&read.core, core, &elements, &document);
        let document = description.write(DescriptionFormat::OaiDc);
        let read = DublinCore::from_oai_dc(document.as_bytes());
        assert_eq!(read.ok().as_ref(), Some(core));
        for format in [DescriptionFormat::Csl, DescriptionFormat::JsonLd] {
            let document = description.write(format);
            let read: serde_json::Value =
                serde_json::from_str(&document).unwrap_or_else(|error| panic!("{error}"));
            let title = match format {
                DescriptionFormat::Csl => &read[0]["title"],
                _ => &read["name"],
            };
            assert_eq!(title.as_str(), core.first(Element::Title));
            assert!(format == DescriptionFormat::Csl || !document.contains(['<', '>']));
        }
        let document = description.write(DescriptionFormat::Datacite);
        let mut reader = quick_xml::Reader::from_str(&document);
        loop {
            match reader.read_event() {
                Ok(quick_xml::events::Event::Eof) => break,
                Ok(_) => {}
                Err(error) => panic!("{error}: {document}"),
            }
        }
    }
}

#[test]
fn an_item_without_a_record_is_described() {
    let empty = description(BibliographicRecord::default());
    assert_eq!(
        empty.write(DescriptionFormat::Bibtex),
        "@misc{GRBS,\n  title = {{8JMKD3MGP8W/34PGRBS}},\n  ibi = {8JMKD3MGP8W/34PGRBS},\n  \
         url = {http://urlib.net/8JMKD3MGP8W/34PGRBS},\n}\n"
            .replace("GRBS,", "JmPg,")
    );
    let datacite = empty.write(DescriptionFormat::Datacite);
    assert!(datacite.contains("<creatorName>:unav</creatorName>"));
    assert!(datacite.contains("<publicationYear>2026</publicationYear>"));
}

#[test]
fn dates_have_parts() {
    for (text, parts) in [
        ("2009", Some(vec![2009])),
        ("2009-02", Some(vec![2009, 2])),
        ("2009-02-16", Some(vec![2009, 2, 16])),
        ("2009-02-16T17:46:00Z", Some(vec![2009, 2, 16])),
        ("2009-13", None),
        ("2009-02-16-01", None),
        ("0000", None),
        ("in press", None),
        ("", None),
    ] {
        assert_eq!(date_parts(text), parts, "{text}");
    }
}
