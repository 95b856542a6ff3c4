//! Metadata: which format a file is in, and each reader, whatever the file is.

use ibifs::formats::metadata::{
    DublinCore, Element, MAX_BYTES, MetadataError, MetadataProblem, RecordFormat,
    check as problems_of, read_metadata_text, read_record, sniff,
};

use super::{plain, sentence, text, two_lines};

/// The first line is the name of a file, the rest what it holds.
pub fn check(data: &[u8]) {
    let (name, bytes) = two_lines(data);
    let name = text(name).unwrap_or("record");
    type Read = fn(&[u8]) -> Result<DublinCore, MetadataError>;
    let readers: [(RecordFormat, Read); 4] = [
        (RecordFormat::OaiDc, DublinCore::from_oai_dc),
        (RecordFormat::Bibtex, DublinCore::from_bibtex),
        (RecordFormat::Refer, DublinCore::from_refer),
        (RecordFormat::Text, DublinCore::parse_text),
    ];
    let problems = problems_of(bytes);
    for problem in &problems {
        plain(problem);
        assert!(problem.line >= 1);
    }
    if !problems.iter().any(MetadataProblem::is_error) {
        assert!(read_metadata_text(bytes).is_ok());
    }
    let found = sniff(name, bytes);
    assert_eq!(read_record(name, bytes).is_some(), found.is_some());
    for (format, read) in readers {
        let result = read(bytes);
        if found == Some(format) {
            let by_name = read_record(name, bytes).map(Result::ok);
            assert_eq!(by_name, Some(result.as_ref().ok().cloned()));
        }
        match result {
            Ok(record) => written(&record, bytes.len()),
            Err(error) => sentence(&error),
        }
    }
}

/// A record is what it promises to be, and both formats that are written read back to it.
fn written(record: &DublinCore, length: usize) {
    let mut size = 0;
    for (element, value) in record.iter() {
        assert!(!value.is_empty() && value == value.trim());
        assert!(!value.contains(|sign: char| sign < ' ' || "\u{fffe}\u{ffff}".contains(sign)));
        assert_eq!(Element::from_name(element.name()), Some(element));
        assert_eq!(value.lines().count(), 1);
        size += value.len();
    }
    // Strings of BibTeX are put in, up to a bound; a byte becomes three at most.
    assert!(size <= 8 * length + MAX_BYTES, "{size} of {length} bytes");
    let lines = record.to_text();
    if lines.len() <= MAX_BYTES {
        assert_eq!(
            DublinCore::parse_text(lines.as_bytes()).as_ref().ok(),
            Some(record)
        );
    }
    let xml = record.to_oai_dc();
    if xml.len() <= MAX_BYTES {
        assert_eq!(
            DublinCore::from_oai_dc(xml.as_bytes()).as_ref().ok(),
            Some(record)
        );
    }
    assert_eq!(sniff("x.bib", xml.as_bytes()), Some(RecordFormat::OaiDc));
    if !record.is_empty() {
        assert_eq!(sniff("x.bib", lines.as_bytes()), Some(RecordFormat::Text));
    }
}
