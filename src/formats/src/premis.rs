//! PREMIS 3.0 (loc.gov/standards/premis): what preservation systems record of a package. The item is an intellectual
//! entity, each file is an object that is part of it, and the packing is an event by ibifs.

use quick_xml::escape::escape;

use super::item::Names;

/// The file of a package in which preservation systems look for it (E-ARK CSIP, section 5.4).
pub const PREMIS: &str = "metadata/preservation/premis.xml";
/// The most files that are described; a package of more has no such file.
pub const MOST_FILES: usize = 100_000;

const NAMESPACE: &str = "http://www.loc.gov/premis/v3";
const SCHEMA: &str = "https://www.loc.gov/standards/premis/premis.xsd";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The identifiers of the one event and the one agent.
const EVENT: &str = "packing";
const AGENT: &str = "ibifs";

/// A file of a package.
#[derive(Clone, Copy, Debug)]
pub struct PremisFile<'a> {
    /// Its path in the package.
    pub path: &'a str,
    /// Its length in bytes.
    pub length: u64,
    /// Its digest by SHA-512, in hexadecimal digits.
    pub sha512: &'a str,
}

/// The document for a package that is made on a day (`2009-02-16`).
pub fn document<'a>(
    names: &Names,
    files: impl Iterator<Item = PremisFile<'a>>,
    day: &str,
) -> String {
    let name = names.preferred();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<premis xmlns=\"{NAMESPACE}\"\n    xmlns:xsi=\"{XSI}\"\n    \
         xsi:schemaLocation=\"{NAMESPACE} {SCHEMA}\" version=\"3.0\">\n  \
         <object xsi:type=\"intellectualEntity\">\n"
    );
    let rep = names.rep().map(ToString::to_string);
    let ibip = names.ibip().map(ToString::to_string);
    for name in [rep, ibip].into_iter().flatten() {
        xml.push_str(&format!("    {}\n", identifier("object", "IBI", &name)));
    }
    xml.push_str("  </object>\n");
    for file in files {
        xml.push_str(&of_file(&file, &name));
    }
    xml.push_str(&format!(
        "  <event>\n    {}\n    <eventType>packing</eventType>\n    \
         <eventDateTime>{day}</eventDateTime>\n    {}\n    {}\n  </event>\n",
        identifier("event", "local", EVENT),
        identifier("linkingAgent", "local", AGENT),
        identifier("linkingObject", "IBI", &name),
    ));
    xml.push_str(&format!(
        "  <agent>\n    {}\n    <agentName>ibifs</agentName>\n    <agentType>software</agentType>\n    \
         <agentVersion>{}</agentVersion>\n  </agent>\n</premis>\n",
        identifier("agent", "local", AGENT),
        env!("CARGO_PKG_VERSION"),
    ));
    xml
}

fn of_file(file: &PremisFile<'_>, item: &str) -> String {
    let media_type = mime_guess::from_path(file.path).first_raw();
    format!(
        "  <object xsi:type=\"file\">\n    {}\n    <objectCharacteristics>\n      \
         <fixity><messageDigestAlgorithm>SHA-512</messageDigestAlgorithm>\
         <messageDigest>{}</messageDigest></fixity>\n      <size>{}</size>\n      \
         <format><formatDesignation><formatName>{}</formatName></formatDesignation></format>\n    \
         </objectCharacteristics>\n    <relationship>\
         <relationshipType>structural</relationshipType><relationshipSubType>is part of</relationshipSubType>{}\
         </relationship>\n  </object>\n",
        identifier("object", "local", file.path),
        file.sha512,
        file.length,
        media_type.unwrap_or("application/octet-stream"),
        identifier("relatedObject", "IBI", item),
    )
}

/// An identifier: `<xIdentifier>` with its type and its value.
fn identifier(of: &str, kind: &str, value: &str) -> String {
    format!(
        "<{of}Identifier><{of}IdentifierType>{kind}</{of}IdentifierType>\
         <{of}IdentifierValue>{}</{of}IdentifierValue></{of}Identifier>",
        escape(value)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_described() {
        let rep = ibi::Rep::parse("example.org/a/2020/01.01.00.00").expect("a rep");
        let names = Names::new(Some(rep), None).expect("a name");
        let file = PremisFile {
            path: "data/doc/a<b>.pdf",
            length: 30,
            sha512: "ab12",
        };
        let text = document(&names, [file].into_iter(), "2020-01-02");
        for part in [
            "<objectIdentifier><objectIdentifierType>IBI</objectIdentifierType>\
             <objectIdentifierValue>example.org/a/2020/01.01.00.00</objectIdentifierValue></objectIdentifier>",
            "<objectIdentifierValue>data/doc/a&lt;b&gt;.pdf</objectIdentifierValue>",
            "<messageDigest>ab12</messageDigest></fixity>\n      <size>30</size>",
            "<formatName>application/pdf</formatName>",
            "<eventDateTime>2020-01-02</eventDateTime>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
