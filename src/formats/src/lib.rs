//! Formats that are read and written: pure, with no clock, disk, socket, database or system call.
//!
//! - [`address`]: addresses of Archives on the network, as texts.
//! - [`base_url`]: the URLs at which services are reached, as texts.
//! - [`hex`]: bytes as hexadecimal digits.
//! - [`fixity`]: the digests of an item's files, as texts, and what one that differs means.
//! - [`pronom`]: the formats of files, as programs have identified them.
//! - [`item`]: an item's names and state, what was decided about it, and its sidecar.
//! - [`copies`]: the copies of an item that an Archive wants and knows of.
//! - [`links`]: what a symbolic link that leaves an item says in either tree.
//! - [`bag`]: the texts of a BagIt bag.
//! - [`entry`]: an entry of an item, as a line of a text.
//! - [`inventory`]: what is in an item, as a text that an Archive publishes.
//! - [`tree_name`]: the grammar of names in the tree of an Archive.
//! - [`level`]: what is below a level of an Archive, as a text that it publishes.
//! - [`mint_request`]: the request for several items at once, in a mount.
//! - [`metadata`]: Dublin Core, and the formats it is read from.
//! - [`description`]: an item's description in BibTeX, CSL-JSON, DataCite and other formats.
//! - [`citation`]: the citation of an item in a style of the Citation Style Language.
//! - [`name_spaces`]: the prefixes that complete the identifiers of `upn:` names.
//! - [`search`]: what a user searches for, as a text.
//! - [`table`]: the import table, from its text to rows.
//! - [`picture`]: small pictures of images and of pages.
//! - [`file_text`]: the words of a text file.
//! - [`pdf_text`]: the words of a PDF file.
//! - [`mtree`]: what a filesystem keeps of files beside their content, as a text.
//! - [`query`]: the query string of a URL, and values in one.
//! - [`question`]: the messages between a command and the daemon of a mount.
//! - [`resolution`]: from a persistent URL to what Archives are asked, and what their answers mean.
//! - [`federation`]: the list of Archives that a resolver publishes and reads.
//! - [`registration`]: the requests and answers of the registration protocol of 2009.
//! - [`oai`]: OAI-PMH: arguments to requests, answers to XML.
//! - [`tlog`]: transparency logs: signed notes, checkpoints, tiles and proofs.
//! - [`audit`]: audits among Archives.
//! - [`learned`]: what the service for audits leaves for the ledger of copies.
//! - [`timestamping`]: time stamps of others (RFC 3161).
//! - [`history`]: what was done to an item or a store, as a line.
//! - [`premis`]: what preservation systems record of a package, and what was done to an item, in PREMIS.
//! - [`webdav`]: WebDAV: what a request asks for, answers to XML.
#![allow(rustdoc::private_intra_doc_links)]

pub mod address;
pub mod audit;
pub mod bag;
pub mod base_url;
pub mod citation;
pub mod copies;
pub mod description;
pub mod entry;
pub mod federation;
pub mod file_text;
pub mod fixity;
pub mod hex;
pub mod history;
pub mod inventory;
pub mod item;
pub mod learned;
pub mod level;
pub mod links;
pub mod metadata;
pub mod mint_request;
pub mod mtree;
pub mod name_spaces;
pub mod oai;
pub mod pdf_text;
pub mod picture;
pub mod premis;
pub mod pronom;
pub mod query;
pub mod question;
pub mod registration;
pub mod resolution;
pub mod search;
pub mod table;
pub mod timestamping;
pub mod tlog;
pub mod tree_name;
pub mod webdav;
