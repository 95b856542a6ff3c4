//! The bodies of PROPFIND requests, and the answers that repeat names of them.

use ibifs::formats::metadata::DublinCore;
use ibifs::formats::webdav::{BEGIN, END, FileProperties, PropfindError, Resource, Wanted};

/// The longest answer for one resource, in bytes.
const LONGEST: usize = 64 * 1024;

/// A body is read or refused, and the answer is well-formed and of limited length.
pub fn check(data: &[u8]) {
    let wanted = match Wanted::parse(data) {
        Ok(wanted) => wanted,
        Err(error @ (PropfindError::Xml | PropfindError::Unknown | PropfindError::TooMany)) => {
            return super::plain(&error.sentence());
        }
    };
    // Names of any bytes are in answers, too.
    for name in [data, b"a"] {
        let resource = Resource {
            href: "/dav/a%20b".to_owned(),
            name: name.iter().copied().take(255).collect(),
            file: Some(FileProperties {
                length: 1,
                media_type: "text/plain",
                tag: Some("\"1\"".to_owned()),
            }),
            ..Resource::default()
        };
        let mut xml = BEGIN.to_owned();
        wanted.write(&resource, &mut xml);
        xml.push_str(END);
        assert!(xml.len() < LONGEST, "{} bytes", xml.len());
        let forbidden = |character: char| character.is_control() && character != '\n';
        assert!(!xml.contains(forbidden), "{xml}");
        let read = DublinCore::from_oai_dc(xml.as_bytes());
        let error = read.map(|_| ()).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(
            error.is_empty() || error.contains("no Dublin Core"),
            "{error}: {xml}"
        );
    }
}
