//! Arguments of the commands that exchange items with other Archives.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::{ItemState, NetworkOptions, Output, value};
use crate::formats::base_url::BaseUrl;

/// The items that are copied or handed over.
#[derive(Debug, Args)]
pub struct Selection {
    /// Store or mount point, where identifiers alone or no items are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// All items whose rep or IBIp begins with this
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// All items of this year, by their identifiers
    #[arg(long, value_name = "YEAR", value_parser = value::year)]
    pub year: Option<u32>,
    /// With each item, also the item that is its metadata
    #[arg(long)]
    pub with_metadata: bool,
    /// Also items that were removed at the destination
    #[arg(long)]
    pub bring_back: bool,
    /// File with the token for the Archive at a URL
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs copy`
#[derive(Debug, Args)]
pub struct Copy {
    /// Items, by path or identifier, and last the store, mount point or URL of the Archive to copy
    /// them to
    #[arg(value_name = "ITEM... DEST", required = true)]
    pub paths: Vec<String>,
    /// All items in this state
    #[arg(long, value_name = "STATE", ignore_case = true)]
    pub state: Option<ItemState>,
    /// Read both sides, and copy files again that differ in spite of the same size and time
    #[arg(long)]
    pub verify: bool,
    /// URL of an Archive from which items are fetched that the store does not hold
    #[arg(long, value_name = "URL", value_parser = value::base_url)]
    pub from: Vec<BaseUrl>,
    /// URL of a resolver that finds the Archives of such items [default: the one that the destination
    /// names]
    #[arg(long, value_name = "URL", value_parser = value::base_url)]
    pub resolver: Vec<BaseUrl>,
    /// Also reach Archives with addresses of private networks that a resolver or an Archive names
    #[arg(long)]
    pub allow_private: bool,
    /// The items, and options for them.
    #[command(flatten)]
    pub selection: Selection,
}

/// `ibifs transfer`
#[derive(Debug, Args)]
pub struct Transfer {
    /// Items, by path or identifier, and last the store, mount point or URL of the Archive that
    /// will hold the originals
    #[arg(value_name = "ITEM... DEST", required = true)]
    pub paths: Vec<String>,
    /// All items whose transfer was begun and is not finished
    #[arg(long)]
    pub pending: bool,
    /// Cancel transfers that were begun and not finished: the originals stay here
    #[arg(long)]
    pub cancel: bool,
    /// With --cancel: the other Archive is gone for good and is not asked; DEST is the identifier of its
    /// service
    #[arg(long, requires = "cancel")]
    pub receiver_is_gone: bool,
    /// The items, and options for them.
    #[command(flatten)]
    pub selection: Selection,
}

/// `ibifs claim`
#[derive(Debug, Args)]
pub struct Claim {
    /// Items of which copies are held here, by path or identifier
    #[arg(value_name = "ITEM", required = true)]
    pub items: Vec<String>,
    /// Store, mount point or service URL of the Archive that removed the originals
    #[arg(long, value_name = "OTHER")]
    pub from: String,
    /// Store or mount point, where identifiers alone are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs export`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("format").required(true))]
pub struct Export {
    /// A bag for each item (BagIt 1.0, RFC 8493)
    #[arg(long, group = "format")]
    pub bagit: bool,
    /// Write each bag as one zip file
    #[arg(long, requires = "bagit", conflicts_with = "ocfl")]
    pub zip: bool,
    /// An object for each item, in a storage root (OCFL 1.1)
    #[arg(long, group = "format")]
    pub ocfl: bool,
    /// Items, by path or identifier, and last the directory for the bags, or storage root; created if
    /// it is missing
    #[arg(value_name = "ITEM... DEST", required = true)]
    pub paths: Vec<String>,
    /// All items of the store
    #[arg(long)]
    pub all: bool,
    /// All items whose rep or IBIp begins with this
    #[arg(long)]
    pub prefix: Option<String>,
    /// All items that were identified in this year
    #[arg(long)]
    pub year: Option<u16>,
    /// Store or mount point, where identifiers alone are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs import`
#[derive(Debug, Args)]
pub struct Import {
    /// Store or mount point; with --verify, a package
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// A bag or OCFL object, also in a zip or tar file, a directory that holds some, or a table (CSV)
    #[arg(value_name = "SOURCE", required_unless_present = "verify")]
    pub sources: Vec<PathBuf>,
    /// Mint an item for it: a package that names none, a zip or tar file, or a directory
    #[arg(long, conflicts_with_all = ["dry_run", "replace", "same_owner"])]
    pub mint: bool,
    /// Check packages only, and import nothing
    #[arg(long, conflicts_with_all = ["mint", "dry_run", "replace", "same_owner"])]
    pub verify: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Let the table replace what an item says
    #[arg(long)]
    pub replace: bool,
    /// Keep the owners of files, by user and group number
    #[arg(long)]
    pub same_owner: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}
