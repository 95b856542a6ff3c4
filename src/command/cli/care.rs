//! Arguments of the commands that check, repair and back up a store.

use std::path::PathBuf;

use clap::Args;

use super::{NetworkOptions, Output, value};
use crate::archive::backup::Keep;
use crate::archive::scrub::ScrubPart;
use crate::sql::index_url::IndexPlace;

/// `ibifs reindex`
#[derive(Debug, Args)]
pub struct Reindex {
    /// Directory of the store
    pub store: PathBuf,
    /// Build the index there, and use it from now on: postgres://USER@HOST:PORT/DATABASE, or file for one in the store
    #[arg(long, value_name = "URL", value_parser = value::HidingPassword(value::index_place))]
    pub to: Option<IndexPlace>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs fsck`
#[derive(Debug, Args)]
pub struct Fsck {
    /// Directory of the store, or of a backup
    #[arg(value_name = "STORE")]
    pub store: PathBuf,
    /// Repair what can be repaired
    #[arg(long)]
    pub repair: bool,
    /// Continue minting from the present: the clock was ahead, and is right now
    #[arg(long, requires = "repair")]
    pub clock_is_right: bool,
    /// Show what --repair would repair, and repair nothing
    #[arg(long, conflicts_with = "repair")]
    pub dry_run: bool,
    /// Check all generations of a backup, not only the newest
    #[arg(long, conflicts_with_all = ["repair", "dry_run", "with"])]
    pub all: bool,
    /// Also report originals that another Archive claims: its store, mount point or service URL
    #[arg(long, value_name = "OTHER")]
    pub with: Option<String>,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs scrub`
#[derive(Debug, Args)]
pub struct Scrub {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// Only these items
    #[arg(value_name = "ITEM")]
    pub items: Vec<String>,
    /// Accept these items as they are now
    #[arg(long, requires = "items", conflicts_with = "dry_run")]
    pub accept: bool,
    /// Compare only; record nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Start a new pass, wherever the last one stopped
    #[arg(long, conflicts_with = "items")]
    pub restart: bool,
    /// Only part N of M, for hosts that scrub a store together
    #[arg(long, value_name = "N/M", value_parser = value::part, conflicts_with = "items")]
    pub part: Option<ScrubPart>,
    /// Read at most this many bytes a second; K, M and G are powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = value::bytes)]
    pub rate: Option<u64>,
    /// Have the formats of files identified by this program: fido or sf
    #[arg(long, value_name = "PROGRAM", conflicts_with = "dry_run")]
    pub formats: Option<PathBuf>,
    /// The signature file of that program
    #[arg(long, value_name = "FILE", requires = "formats")]
    pub signatures: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs copies`
#[derive(Debug, Args)]
pub struct Copies {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// Only these items
    #[arg(value_name = "ITEM")]
    pub items: Vec<String>,
    /// Only items with fewer copies than archive.ibi wants, one a line
    #[arg(long)]
    pub short: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs report`
#[derive(Debug, Args)]
pub struct Report {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// Only the levels of digital preservation of the NDSA
    #[arg(long)]
    pub ndsa: bool,
    /// Print a page of HTML
    #[arg(long, conflicts_with_all = ["ndsa", "json"])]
    pub html: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs repair`
#[derive(Debug, Args)]
pub struct Repair {
    /// Store or mount point, unless --store names it, and the items in it
    #[arg(value_name = "STORE-OR-MNT ITEM...")]
    pub paths: Vec<String>,
    /// All items of the store
    #[arg(long)]
    pub all: bool,
    /// Store or mount point; all arguments are items then
    #[arg(long, value_name = "STORE-OR-MNT")]
    pub store: Option<PathBuf>,
    /// Store, backup, mount point or URL of an Archive that may have good copies
    #[arg(long, value_name = "PLACE", required = true)]
    pub from: Vec<String>,
    /// The options by which other machines are reached.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs audit`
#[derive(Debug, Args)]
pub struct Audit {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// Only these items
    #[arg(value_name = "ITEM")]
    pub items: Vec<String>,
    /// Store, backup or mount point that has copies, or URL of an Archive that archive.ibi lists
    #[arg(long, value_name = "PLACE", required_unless_present = "key")]
    pub with: Option<String>,
    /// Begin no further item after so many minutes
    #[arg(long, value_name = "N", conflicts_with = "items")]
    pub minutes: Option<u64>,
    /// Print the key by which other Archives know this one in audits
    #[arg(long, conflicts_with_all = ["with", "items", "minutes", "json"])]
    pub key: bool,
    /// The options of the network.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs backup`
#[derive(Debug, Args)]
pub struct Backup {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT", required_unless_present_any = ["list", "drill"])]
    pub place: Option<PathBuf>,
    /// A new directory, or an earlier backup, which is brought up to date
    #[arg(value_name = "DEST", required_unless_present_any = ["list", "drill"])]
    pub destination: Option<PathBuf>,
    /// Make a generation; keep the newest of so many days, weeks, months and years
    #[arg(long, value_name = "7d,4w,12m,3y", value_parser = value::keep)]
    pub keep: Option<Keep>,
    /// Place of the backup, in words such as those of 'place' in archive.ibi; remembered
    #[arg(long = "place", value_name = "WORDS", conflicts_with_all = ["list", "drill"])]
    pub words: Option<String>,
    /// List the generations in a directory
    #[arg(long, value_name = "DEST", conflicts_with_all = ["place", "destination", "keep"])]
    pub list: Option<PathBuf>,
    /// Restore a backup to a scratch directory, and compare it
    #[arg(long, value_name = "DEST[@DATE]", conflicts_with_all = ["place", "destination", "keep", "list"])]
    pub drill: Option<PathBuf>,
    /// Restore and compare only so many items, chosen by chance
    #[arg(long, value_name = "N", requires = "drill")]
    pub sample: Option<usize>,
    /// Tell the history of this store, of which the backup is, that it was tried
    #[arg(long, value_name = "STORE-OR-MNT", requires = "drill")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}
