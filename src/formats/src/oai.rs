//! OAI-PMH 2.0: the requests of harvesters, and the answers as XML.
//!
//! Arguments become a request or the errors of the protocol, and results become a document that is valid
//! under its schema. This module has neither the records nor a clock.

mod answer;
mod arguments;
mod date;
mod fault;
mod format;
mod set;
mod token;

pub use answer::{Header, OaiAnswer, OaiContent, OaiRecord, RepositoryDescription};
pub use arguments::{ListSelection, OaiArguments, OaiRequest};
pub use fault::{OaiError, OaiErrorCode};
pub use format::OaiFormat;
pub use set::{collection_in, collection_of, set_of, sets_of, spec_of};
pub use token::ListPosition;

use crate::item::Names;
use ibi::{Ibi, Rep};

/// The format of records that every service has.
pub const FORMAT: OaiFormat = OaiFormat::OaiDc;

/// The local part of an item's OAI identifier: the canonical spelling of its rep, or else of its IBIp.
#[must_use]
pub fn local_name(names: &Names) -> String {
    let ibip = || names.ibip().map(ibi::Ibip::canonical);
    let rep = names.rep().map(Rep::canonical);
    rep.or_else(ibip).unwrap_or_default()
}

/// The OAI identifier of an item. It has the host of the Archive's own configuration, as its reps do: the
/// address of the service may change, the identifier may not.
#[must_use]
pub fn identifier(host: &str, local_name: &str) -> String {
    format!("oai:{host}:{local_name}")
}

/// The item that an OAI identifier of this host names.
#[must_use]
pub fn named_by(host: &str, identifier: &str) -> Option<Ibi> {
    let rest = identifier.strip_prefix("oai:")?;
    let (scope, name) = rest.split_once(':')?;
    let ibi = Ibi::parse(name).ok();
    ibi.filter(|_| scope.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        let rep = Ibi::parse("sid.INPE.br/MTC-m18@80/2009/02.16.17.46").expect("a rep");
        let name = local_name(&Names::from(rep.clone()));
        assert_eq!(name, "sid.inpe.br/mtc-m18@80/2009/02.16.17.46");
        let text = identifier("archive.example.org", &name);
        assert_eq!(
            text,
            "oai:archive.example.org:sid.inpe.br/mtc-m18@80/2009/02.16.17.46"
        );
        assert_eq!(named_by("archive.example.org", &text), Some(rep));
        for other in [
            "",
            "oai:",
            "oai:archive.example.org",
            "oai:archive.example.org:",
            "oai:archive.example.org:x",
            "oai:other.example.org:sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
            "OAI:archive.example.org:sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
            "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
        ] {
            assert_eq!(named_by("archive.example.org", other), None, "{other}");
        }
        let ibip = Ibi::parse("8jmkd3mgp8w/34pgrbs").expect("an IBIp");
        assert_eq!(local_name(&Names::from(ibip)), "8JMKD3MGP8W/34PGRBS");
    }
}
