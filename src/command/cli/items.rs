//! Arguments of the commands for items, relations and identifiers.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::{ItemState, LogPoint, NetworkOptions, Output, value};

/// `ibifs mint`
#[derive(Debug, Args)]
pub struct Mint {
    /// Store or mount point [default: the mount of the working directory]
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: Option<PathBuf>,
    /// The new item is the next edition of this one
    #[arg(long, value_name = "ITEM", group = "relative")]
    pub edition_of: Option<String>,
    /// Give the new edition a copy of the metadata of that item
    #[arg(long, requires = "edition_of")]
    pub with_metadata: bool,
    /// Give the new edition a copy of the files of that item
    #[arg(long, requires = "edition_of", conflicts_with = "from")]
    pub with_files: bool,
    /// The new item is a translation of this one
    #[arg(long, value_name = "ITEM", group = "relative", requires = "lang")]
    pub translation_of: Option<String>,
    /// The new item is the metadata of this one
    #[arg(long, value_name = "ITEM", group = "relative")]
    pub metadata_of: Option<String>,
    /// Language of the translation: pt, pt-BR ...
    #[arg(long, requires = "translation_of")]
    pub lang: Option<String>,
    /// Mint this number of items, from 1 to 10,000
    #[arg(long, value_name = "N", value_parser = value::count_of_mints,
        conflicts_with_all = ["relative", "with_metadata", "with_files", "lang", "from", "keep"])]
    pub count: Option<usize>,
    /// Move what is in this directory into the new item
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Copy the directory of --from and leave it as it is
    #[arg(long, requires = "from")]
    pub keep: bool,
    /// Make a draft, which only its owner and group may enter
    #[arg(long)]
    pub draft: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs publish`
#[derive(Debug, Args)]
pub struct Publish {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Publish it although it has no title
    #[arg(long)]
    pub untitled: bool,
    /// Withhold its files from readers until then: a day, which begins in UTC, or an instant as in RFC 3339
    #[arg(long, value_name = "DATE", value_parser = value::instant)]
    pub embargo: Option<ibi::Timestamp>,
    /// Seal it so long after now, such as 30d: its files change no more then
    #[arg(long, value_name = "PERIOD", value_parser = value::period)]
    pub seal_after: Option<i64>,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs seal`
#[derive(Debug, Args)]
pub struct Seal {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Seal it so long after now, such as 30d
    #[arg(long, value_name = "PERIOD", value_parser = value::period)]
    pub after: Option<i64>,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs unseal`
#[derive(Debug, Args)]
pub struct Unseal {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Why its files have to change
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs withdraw`
#[derive(Debug, Args)]
pub struct Withdraw {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Why it is withdrawn: one line, which is public
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs restore`
#[derive(Debug, Args)]
pub struct Restore {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Put a removed item back from a backup: its newest generation, or that of a date
    #[arg(long, value_name = "BACKUP[@DATE]")]
    pub from: Option<PathBuf>,
    /// Write it to this new directory instead
    #[arg(long, value_name = "DIR", requires = "from")]
    pub to: Option<PathBuf>,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs remove`
#[derive(Debug, Args)]
pub struct Remove {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Why it is removed: one line, which is public
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Remove it also if fewer copies are left than archive.ibi wants at least
    #[arg(long)]
    pub force: bool,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs work`
#[derive(Debug, Args)]
pub struct Work {
    /// Levels and items: paths in a mount, or identifiers of items
    #[arg(value_name = "ITEM", required = true, num_args = 1..)]
    pub items: Vec<String>,
    /// The command and its arguments [default: $SHELL]
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<std::ffi::OsString>,
    /// Store or mount point, where identifiers alone are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
}

/// `ibifs show`
#[derive(Debug, Args)]
pub struct Show {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs cite`
#[derive(Debug, Args)]
pub struct Cite {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI", required_unless_present = "list_styles")]
    pub item: Option<String>,
    /// Style of the citation: abnt, apa, chicago, harvard, ieee, mla, vancouver ...
    #[arg(long, default_value = "apa", value_parser = value::StyleParser, hide_possible_values = true)]
    pub style: String,
    /// Language of the words that the style adds [default: that of the messages]
    #[arg(long, value_parser = ["en", "pt-BR"], ignore_case = true)]
    pub language: Option<String>,
    /// Print the names of the styles
    #[arg(long, conflicts_with_all = ["item", "style", "language", "store"])]
    pub list_styles: bool,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs history`
#[derive(Debug, Args)]
pub struct History {
    /// Path in a mount or store, an identifier, or a store or mount point for all its items [default: the only store that is
    /// mounted]
    #[arg(value_name = "ITEM-OR-STORE")]
    pub target: Option<String>,
    /// Print what was done since this day or instant
    #[arg(long, value_name = "DATE", value_parser = value::instant)]
    pub since: Option<ibi::Timestamp>,
    /// Print events of this kind: its word, or its code in PREMIS
    #[arg(long = "type", value_name = "WORD")]
    pub kind: Option<String>,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs prove`
#[derive(Debug, Args)]
pub struct Prove {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
}

/// `ibifs cosign`
#[derive(Debug, Args)]
pub struct Cosign {
    /// Store or mount point [default: the only one that is mounted]
    pub store: Option<PathBuf>,
    /// Have a time stamping authority (RFC 3161) stamp the log, too
    #[arg(long, value_name = "URL")]
    pub tsa: Option<String>,
    /// Give the log another key first
    #[arg(long)]
    pub new_key: bool,
    /// The network options.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// The proof, as 'ibifs prove' has printed it; - for standard input
    pub file: PathBuf,
    /// The logs and witnesses that are trusted, in the form of C2SP tlog-policy
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Trust the key of the log of this store
    #[arg(
        long,
        value_name = "STORE",
        conflicts_with = "policy",
        required_unless_present = "policy"
    )]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs watch`
#[derive(Debug, Args)]
pub struct Watch {
    /// Store or mount point [default: the only one that is mounted]
    pub store: Option<PathBuf>,
    /// Print what happened after this position, which it has printed; 'now' begins with what
    /// happens next [default: all items]
    #[arg(long, value_name = "POSITION")]
    pub from: Option<String>,
    /// Print the events of the history instead: from the one with this number in the log on, or since this day or instant
    #[arg(long, value_name = "NUMBER|DATE", conflicts_with = "from", value_parser = value::log_point)]
    pub since: Option<LogPoint>,
    /// End when all that has happened is printed
    #[arg(long)]
    pub once: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs find`
#[derive(Debug, Args)]
pub struct Find {
    /// Words, phrases in quotation marks, FIELD:WORD, -WORD to exclude it, BEGIN*
    #[arg(value_name = "WORDS", required_unless_present_any = ["creator", "year", "type"])]
    pub words: Vec<String>,
    /// A creator or contributor
    #[arg(long, value_name = "NAME")]
    pub creator: Vec<String>,
    /// A year, or the first and the last year
    #[arg(long, value_name = "YEAR[-YEAR]")]
    pub year: Option<String>,
    /// A type, such as thesis or dataset
    #[arg(long)]
    pub r#type: Option<String>,
    /// Print at most so many items
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub limit: usize,
    /// Look at all files before the search, and read those that have changed, however long it takes
    #[arg(long)]
    pub complete: bool,
    /// Store or mount point
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs ls`
#[derive(Debug, Args)]
pub struct List {
    /// Store or mount point [default: the only one that is mounted]
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: Option<PathBuf>,
    /// Only items whose rep or IBIp begins with this
    pub prefix: Option<String>,
    /// Only items in this state
    #[arg(long, ignore_case = true)]
    pub state: Option<ItemState>,
    /// Print titles, too, for which each description is read
    #[arg(long)]
    pub titles: bool,
    /// Print the number of known copies that count, too, for which the records of each item are read
    #[arg(long)]
    pub copies: bool,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs relate`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("relation").required(true))]
pub struct Relate {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Its next edition
    #[arg(long, value_name = "ITEM", group = "relation")]
    pub next_edition: Option<String>,
    /// Its translation into the language of --lang
    #[arg(long, value_name = "ITEM", group = "relation", requires = "lang")]
    pub translation: Option<String>,
    /// Its metadata
    #[arg(long, value_name = "ITEM", group = "relation")]
    pub metadata: Option<String>,
    /// Language of the translation: pt, pt-BR ...
    #[arg(long, requires = "translation")]
    pub lang: Option<String>,
    /// Store or mount point, where identifiers alone are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs unrelate`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("relation").required(true))]
pub struct Unrelate {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Its next edition
    #[arg(long, group = "relation")]
    pub next_edition: bool,
    /// Its translation into the language of --lang
    #[arg(long, group = "relation", requires = "lang")]
    pub translation: bool,
    /// Its metadata
    #[arg(long, group = "relation")]
    pub metadata: bool,
    /// Language of the translation: pt, pt-BR ...
    #[arg(long, requires = "translation")]
    pub lang: Option<String>,
    /// Store or mount point, where an identifier alone is given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// The options of the output.
    #[command(flatten)]
    pub output: Output,
}

/// `ibifs id`
#[derive(Debug, Args)]
pub struct Id {
    /// What to do with it
    #[command(subcommand)]
    pub command: IdCommand,
}

/// A command on an identifier alone.
#[derive(Debug, Subcommand)]
pub enum IdCommand {
    /// Explain an identifier or a link: what it names, host or address, port, date
    Explain {
        /// A rep, an IBIp, or a link to one
        ibi: String,
        /// Store or mount point whose table completes 'upn:' names
        #[arg(long, value_name = "STORE-OR-MNT")]
        store: Option<PathBuf>,
        /// The options of the output
        #[command(flatten)]
        output: Output,
    },
    /// Succeed if it is a valid identifier
    Check {
        /// A rep or an IBIp
        ibi: String,
        /// The options of the output
        #[command(flatten)]
        output: Output,
    },
}
