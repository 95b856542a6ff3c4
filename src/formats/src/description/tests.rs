//! Descriptions are read back as they were written, for all values.

use super::*;
use crate::metadata::DublinCore;

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
        ..Description::default()
    };
    let core = &mut description.record.core;
    core.push(Element::Identifier, "8JMKD3MGP8W/34PGRBS");
    description
}

/// Who may read the files is in the words that each format has for it; a description that does not say it has none of them.
#[test]
fn access_is_said_in_each_format() {
    let unsaid = description(BibliographicRecord::default());
    let said = Description {
        access: Some(AccessRight::Embargoed),
        available: Some("2027-01-31".to_owned()),
        ..unsaid.clone()
    };
    let open = Description {
        access: Some(AccessRight::Open),
        ..said.clone()
    };
    for (format, words, words_after) in [
        (
            DescriptionFormat::OaiDc,
            "<dc:rights>info:eu-repo/semantics/embargoedAccess</dc:rights>",
            "<dc:rights>info:eu-repo/semantics/openAccess</dc:rights>",
        ),
        (
            DescriptionFormat::OaiDc,
            "<dc:date>info:eu-repo/date/embargoEnd/2027-01-31</dc:date>",
            "embargoEnd/2027-01-31",
        ),
        (
            DescriptionFormat::Datacite,
            "<date dateType=\"Available\">2027-01-31</date>",
            "<date dateType=\"Available\">2027-01-31</date>",
        ),
        (
            DescriptionFormat::Datacite,
            "rightsURI=\"info:eu-repo/semantics/embargoedAccess\">embargoed access<",
            "rightsURI=\"info:eu-repo/semantics/openAccess\">open access<",
        ),
        (
            DescriptionFormat::DataciteJson,
            "\"Available\"",
            "\"Available\"",
        ),
        (
            DescriptionFormat::JsonLd,
            "\"embargoed access until 2027-01-31\"",
            "\"open access\"",
        ),
    ] {
        assert!(said.write(format).contains(words), "{}", said.write(format));
        assert!(
            open.write(format).contains(words_after),
            "{}",
            open.write(format)
        );
        let without = unsaid.write(format);
        assert!(
            !without.contains(words) && !without.contains(words_after),
            "{without}"
        );
    }
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
        for format in [
            DescriptionFormat::Mods,
            DescriptionFormat::Dspace,
            DescriptionFormat::Cff,
        ] {
            let document = description.write(format);
            let read = crate::metadata::read_metadata_text(document.as_bytes());
            let read = read.unwrap_or_else(|error| panic!("{error}: {document}"));
            same(&read.core, core, &elements, &document);
            let more = [Element::Subject, Element::Description, Element::Language];
            let is_said = |element: &Element| {
                format != DescriptionFormat::Cff || *element != Element::Language
            };
            let more: Vec<Element> = more.into_iter().filter(is_said).collect();
            same(&read.core, core, &more, &document);
            assert_eq!(read.kind(), RecordKind::Paper, "{document}");
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

/// A record with all that a format may have.
fn complete() -> Description {
    let record = BibliographicRecord::from_bibtex(
        br#"@article{k, author = {Ana da Silva and Banon, Gerald and others}, title = {Rain in Brazil}, journal = {Weather},
          volume = 3, number = 2, pages = {1--9}, date = {2009-02-16}, publisher = {INPE}, editor = {Faria, Luiz},
          abstract = {How it rains.}, note = {Second printing}, keywords = {rain, "sea" level}, language = {en},
          doi = {10.1000/182}, issn = {0099-1112}, license = {CC BY 4.0}, version = {1.2}, funding = {FAPESP: 2019/1},
          orcid = {0000-0002-1825-0097 da Silva, Ana}}"#,
    );
    description(record.unwrap_or_else(|error| panic!("{error}")))
}

/// Each format that ibifs writes is read back.
#[test]
fn every_format_is_read_back() {
    use Element::{Creator, Date, Description, Language, Rights, Subject, Title};
    let written = complete();
    let (core, all) = (&written.record.core, [Title, Creator, Subject, Language]);
    for format in DescriptionFormat::ALL {
        let document = written.write(format);
        let read = crate::metadata::read_metadata_text(document.as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{error}: {document}"));
        let word = format.word();
        same(&read.core, core, &all, &format!("{word}: {document}"));
        // BibTeX has no day.
        let date = match format {
            DescriptionFormat::Bibtex | DescriptionFormat::BibInpe => "2009-02",
            _ => "2009-02-16",
        };
        assert_eq!(read.core.first(Date), Some(date), "{document}");
        let most = "volume number pages doi editor note";
        let fields = match format {
            DescriptionFormat::OaiDc => String::new(),
            DescriptionFormat::Ris => format!("{most} journal publisher issn"),
            DescriptionFormat::Csl => format!("{most} journal publisher issn version"),
            DescriptionFormat::Datacite | DescriptionFormat::DataciteJson => {
                "publisher doi editor version funding orcid note others".to_owned()
            }
            DescriptionFormat::JsonLd | DescriptionFormat::Refer => {
                format!("{most} journal publisher version funding orcid")
            }
            DescriptionFormat::Mods => {
                format!("{most} journal publisher issn version funding orcid others")
            }
            DescriptionFormat::Dspace => "publisher issn editor funding note".to_owned(),
            DescriptionFormat::Cff => {
                format!("{most} journal publisher issn version orcid others")
            }
            _ => format!("{most} journal issn version funding orcid others"),
        };
        for field in fields.split_whitespace() {
            assert_eq!(
                read.field(field),
                written.record.field(field),
                "{word} {field}: {document}"
            );
        }
        same(&read.core, core, &[Description], &document);
        if !matches!(format, DescriptionFormat::Ris | DescriptionFormat::Csl) {
            let license =
                |core: &DublinCore| core.first(Rights).and_then(crate::metadata::License::read);
            assert_eq!(license(&read.core), license(core), "{document}");
        }
        if format != DescriptionFormat::OaiDc {
            assert_eq!(read.kind(), written.record.kind(), "{document}");
        }
    }
}

/// A date in words is that date in every format; one that is not understood is not the year of minting.
#[test]
fn dates_are_those_that_were_given() {
    let of = |date: &str| {
        let mut record = BibliographicRecord::default();
        record.core.push(Element::Date, date);
        description(record)
    };
    for (given, year, iso, ris) in [
        ("15/03/2010", "2010", "2010-03-15", "2010/03/15/"),
        ("1999/2003", "1999", "1999/2003", "1999///1999/2003"),
        ("c1920?", "1920", "1920", "1920///c1920?"),
        ("-0044-03-15", "0000", "-0044-03-15", "-044/03/15/"),
        ("março de 2010", "2010", "2010-03", "2010/03//"),
    ] {
        let described = of(given);
        let datacite = described.write(DescriptionFormat::Datacite);
        assert!(
            datacite.contains(&format!("<publicationYear>{year}<")),
            "{datacite}"
        );
        assert!(
            datacite.contains(&format!("<date dateType=\"Issued\">{iso}<")),
            "{datacite}"
        );
        let written = described.write(DescriptionFormat::Ris);
        assert!(written.contains(&format!("DA  - {ris}\r\n")), "{written}");
        assert!(
            described
                .write(DescriptionFormat::JsonLd)
                .contains(&format!("\"datePublished\": \"{iso}\""))
        );
    }
    let unknown = of("long ago");
    let datacite = unknown.write(DescriptionFormat::Datacite);
    assert!(
        datacite.contains("<publicationYear>0000<") && !datacite.contains("<date "),
        "{datacite}"
    );
    assert!(
        unknown
            .write(DescriptionFormat::Ris)
            .contains("DA  - ///long ago\r\n")
    );
}

/// Programs write the paths of the files on their disk into records; no format has them.
#[test]
fn paths_of_a_disk_are_in_no_format() {
    let records = [
        BibliographicRecord::from_bibtex(
            b"@misc{k, title = {A}, file = {PDF:/home/u/x.pdf:application/pdf}, local-url = {file:///home/u}, \
              Bdsk-File-1 = {/home/u}, url = {file:///home/u/x.pdf}, howpublished = {/home/u/x}}",
        ),
        BibliographicRecord::from_ris(b"TY  - GEN\nTI  - A\nL1  - file:///home/u/x.pdf\nUR  - file:///home/u\nER  - \n"),
        BibliographicRecord::from_refer(b"%T A\n%U file:///home/u\n%> file:///home/u/x.pdf\n%@file /home/u\n"),
        BibliographicRecord::from_json(br#"{"type":"book","title":"A","URL":"file:///home/u","file":"/home/u"}"#),
    ];
    for record in records {
        let described = description(record.unwrap_or_else(|error| panic!("{error}")));
        for format in DescriptionFormat::ALL {
            let document = described.write(format);
            assert!(!document.contains("/home/u"), "{document}");
        }
    }
}
