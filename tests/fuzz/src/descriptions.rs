//! Descriptions of an item in the formats of citation programs and catalogues, made of records by others.

use ibifs::formats::description::{DescribedRelation, Description, DescriptionFormat, uri_in};
use ibifs::formats::metadata::{BibliographicRecord, DublinCore, Element, read_metadata_text};

use super::two_lines;

/// A record is described in each format, and each description can be read as that format.
pub fn check(data: &[u8]) {
    let (name, bytes) = two_lines(data);
    let name = std::str::from_utf8(name).unwrap_or("record");
    let Some(Ok(record)) = BibliographicRecord::read(name, bytes) else {
        return;
    };
    for value in record.core.values(Element::Identifier) {
        if let Some(uri) = uri_in(value) {
            assert!(value.contains(&uri) && uri.starts_with("http"));
        }
    }
    let description = Description {
        record,
        ibi: "8JMKD3MGP8W/34PGRBS".to_owned(),
        url: "http://urlib.net/8JMKD3MGP8W/34PGRBS".to_owned(),
        target_file: Some("a b.pdf".to_owned()),
        related: vec![(
            DescribedRelation::LaterEdition,
            "http://urlib.net/8JMKD3MGP8W/34PGRBT".to_owned(),
        )],
        made_on: (2026, 11, 26),
        ..Description::default()
    };
    for format in DescriptionFormat::ALL {
        let document = description.write(format);
        let is_plain =
            |sign: char| sign == '\n' || sign == '\t' || sign == '\r' || !sign.is_ascii_control();
        assert!(document.chars().all(is_plain), "{format:?}: {document:?}");
        read(format, &document);
    }
}

fn read(format: DescriptionFormat, document: &str) {
    let bytes = document.as_bytes();
    match format {
        DescriptionFormat::OaiDc => drop(DublinCore::from_oai_dc(bytes).expect("Dublin Core")),
        DescriptionFormat::Bibtex | DescriptionFormat::BibInpe => {
            let read = BibliographicRecord::from_bibtex(bytes);
            let read = read.unwrap_or_else(|error| panic!("{error}: {document}"));
            assert!(read.core.first(Element::Title).is_some(), "{document}");
            assert_eq!(document.matches("\n@").count(), 0, "{document}");
        }
        DescriptionFormat::Refer => {
            let read = BibliographicRecord::from_refer(bytes);
            read.unwrap_or_else(|error| panic!("{error}: {document}"));
        }
        DescriptionFormat::Ris => {
            for line in document.lines() {
                assert_eq!(line.get(2..6), Some("  - "), "{line:?} in {document}");
            }
            assert_eq!(document.matches("\nER  - ").count(), 1, "{document}");
        }
        DescriptionFormat::Csl | DescriptionFormat::DataciteJson | DescriptionFormat::JsonLd => {
            let read: serde_json::Value = serde_json::from_str(document).expect("JSON");
            assert!(read.is_array() || read.is_object());
        }
        DescriptionFormat::Mods | DescriptionFormat::Dspace | DescriptionFormat::Cff => {
            let read = read_metadata_text(bytes);
            let read = read.unwrap_or_else(|error| panic!("{error}: {document}"));
            assert!(read.core.first(Element::Title).is_some(), "{document}");
        }
        // What is well-formed and another vocabulary is refused for that alone.
        DescriptionFormat::Datacite => {
            let error = DublinCore::from_oai_dc(bytes).map(|_| ()).err();
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(
                error.is_empty() || error.contains("no Dublin Core"),
                "{error}: {document}"
            );
        }
        DescriptionFormat::Premis | DescriptionFormat::Formats => {}
    }
}
