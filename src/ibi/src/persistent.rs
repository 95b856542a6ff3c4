//! Persistent names as people and programs write them: identifiers, links of the living system, and what
//! follows an identifier.
//!
//! One reader serves every place where such a name is met, so that a name means the same item at a command,
//! in a link, in a symbolic link and at a resolver. It separates what identifies an item from what only
//! navigates, and refuses a text that holds no identifier. It makes no request: whether an item exists is
//! not known here.
//!
//! # The forms
//!
//! | form | [`PersistentKind`] |
//! |---|---|
//! | `IBI`, `ibi:IBI`, `http://HOST[:PORT]/IBI`, `.../rep/IBI`, `.../ibi/IBI` | item |
//! | `.../rep-/IBI`, `.../ibi-/IBI` | list of files |
//! | `.../rep-/LEVELS`, `.../rep/LEVELS/`, `.../col/LEVELS`, a rep that ends early | level |
//! | `.../col/REP/PATH`, `IBI/PATH` | file |
//! | `.../attachment.cgi/REP/PATH` | download |
//! | `.../archive.cgi/REP` | package |
//! | `.../mirrorget.cgi?...metadatarepository=REP`, also `mirror.cgi` | record |
//! | `.../goto-/IBI[modifier]` | item |
//! | `upn:NAME:IBI[/PATH]`, `upn:NAME-:IBI[/PATH]`, also `upn:NAME:/IBI[/PATH]` and behind `http://HOST/` | item, list of files or file |
//! | `REP-TDI` | item, with a citation key |
//! | `oai:HOST:IBI` | item |
//! | `SUBDOMAIN:WORD:YEAR:DATE` | item |
//!
//! A modifier, `?` with verbs, or `??` may follow each identifier. `./` and `../` before a name are passed
//! over: they are relative to a page of the Archive that serves it.
//!
//! ```
//! use ibi::persistent::{PersistentKind, PersistentName};
//!
//! let name = PersistentName::parse("http://mtc-m21c.sid.inpe.br:80/col/sid.inpe.br/mtc-m21c/2019/02.06.02.41/doc/a.pdf")?;
//! assert_eq!(name.kind, PersistentKind::File);
//! assert_eq!(name.identifier.to_string(), "sid.inpe.br/mtc-m21c/2019/02.06.02.41");
//! assert_eq!(name.archive.unwrap().to_string(), "mtc-m21c.sid.inpe.br:80");
//! assert_eq!(name.path, b"doc/a.pdf");
//! # Ok::<(), ibi::persistent::PersistentError>(())
//! ```

mod authority;
mod error;
mod found;
mod incomplete;
mod leading;
mod reader;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::relation::Request;
use crate::{AliasPair, Ibi};

pub use error::PersistentError;
pub use incomplete::IncompleteLink;

/// The host that a name says is only a resolver: it holds no items.
pub const RESOLVER: &str = "urlib.net";

/// A persistent name, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentName {
    /// The kind of thing that is asked for.
    pub kind: PersistentKind,
    /// The identifier of the item, or of the items below a level.
    pub identifier: Identifier,
    /// The Archive that the name says, where it says one. Others may hold the item as well.
    pub archive: Option<Authority>,
    /// The request for a thing in place of the item: a modifier, or verbs.
    pub request: Option<Request>,
    /// The kind of document in a citation key, such as `TDI` for a thesis.
    pub citation_key: Option<String>,
    /// The path behind the identifier, as bytes: names in old collections are Latin-1. Empty for none.
    pub path: Vec<u8>,
    /// The name of a name space, of a `upn:` name.
    pub name_space: Option<String>,
    /// Whether the original alone will do, not a copy (`ibiurl.requireditemstatus=Original`).
    pub is_original_required: bool,
    /// The parameters that only navigate, in their order, and the fragment as one named `#`.
    pub navigation: Vec<(String, String)>,
}

/// The kind of thing that a persistent name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PersistentKind {
    /// The item.
    Item,
    /// The list of the files of the item.
    FileList,
    /// A file of the item.
    File,
    /// A file of the item, to be saved.
    Download,
    /// The item as one file.
    Package,
    /// The item that describes another: the identifier is that of the metadata.
    Record,
    /// The items below a level of reps.
    Level,
}

impl PersistentKind {
    /// The kind as one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PersistentKind::Item => "item",
            PersistentKind::FileList => "filelist",
            PersistentKind::File => "file",
            PersistentKind::Download => "download",
            PersistentKind::Package => "package",
            PersistentKind::Record => "record",
            PersistentKind::Level => "level",
        }
    }
}

impl fmt::Display for PersistentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The identifier in a persistent name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// A rep or an IBIp.
    Ibi(Ibi),
    /// Two words that may be recorded as an alias of an item.
    Alias(AliasPair),
    /// The first components of reps, joined by `/`.
    Level(String),
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identifier::Ibi(ibi) => ibi.fmt(f),
            Identifier::Alias(alias) => alias.fmt(f),
            Identifier::Level(level) => f.write_str(level),
        }
    }
}

/// A host in lower case, and a port where one is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority {
    /// The host: a name or an address.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// The way in which texts are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    is_literal: bool,
    takes_aliases: bool,
}

impl Reader {
    /// Reads links: `%hh` is a byte, and no two words are an alias.
    #[must_use]
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Reads names of a filesystem: `%` and `#` stand for themselves.
    #[must_use]
    pub fn literal(self) -> Reader {
        Reader {
            is_literal: true,
            ..self
        }
    }

    /// Takes two words of letters and digits, which may be a recorded alias. Not every such pair is a name.
    #[must_use]
    pub fn with_aliases(self) -> Reader {
        Reader {
            takes_aliases: true,
            ..self
        }
    }

    /// Reads a persistent name.
    ///
    /// # Errors
    /// A text that holds no identifier, a modifier or verb that does not exist, another scheme than `http`,
    /// `https`, `ibi`, `upn` and `oai`, an authority that is not one.
    pub fn parse(self, text: &str) -> Result<PersistentName, PersistentError> {
        reader::read(self, text, None)
    }

    /// Reads a `upn:` name with the beginning of its identifier, such as `8JMKD3MGPCW` or
    /// `dpi.inpe.br/sbsr@80`, which it lacks. Any other name is read as it is.
    ///
    /// # Errors
    /// The errors of [`Reader::parse`], where the two together are not an identifier either.
    pub fn parse_below(self, prefix: &str, text: &str) -> Result<PersistentName, PersistentError> {
        reader::read(self, text, Some(prefix))
    }
}

/// Whether a text begins as a link does: with the scheme of persistent names, after brackets and the like. A
/// path of a file may have any other form of them.
#[must_use]
pub fn is_link(text: &str) -> bool {
    let text = found::link_in(text);
    let begins = |text: &str| {
        let mut schemes = ["http://", "https://", "ibi:", "upn:", "oai:"].into_iter();
        schemes.any(|scheme| {
            let start = text.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
    };
    begins(text) || found::mended(text).is_some_and(|text| begins(&text))
}

impl PersistentName {
    /// Reads a link or an identifier, as [`Reader::new`] does.
    ///
    /// # Errors
    /// The errors of [`Reader::parse`].
    pub fn parse(text: &str) -> Result<PersistentName, PersistentError> {
        Reader::new().parse(text)
    }
}

impl FromStr for PersistentName {
    type Err = PersistentError;

    fn from_str(text: &str) -> Result<PersistentName, PersistentError> {
        PersistentName::parse(text)
    }
}
