//! The command line as a value: what can be said, and the help for it. Touches nothing.

mod examples;
mod mount_helper;
mod next;
mod refusal;
mod translated;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use next::{Next, Wanted, Word, next};

pub use mount_helper::MountHelper;

pub use refusal::Refusal;
pub use translated::translated;

/// Archives as a filesystem: every identifier is a path.
#[derive(Debug, Parser)]
#[command(
    name = "ibifs",
    version,
    about,
    disable_help_subcommand = true,
    after_help = "'ibifs COMMAND -h' tells what a command takes, '--help' more, with examples.",
    after_long_help = examples::IBIFS
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a store, or take over a col/ tree of repositories
    ///
    /// Mints the item of the Archive's service in it, and says what the identifiers minted there
    /// begin with.
    #[command(after_long_help = examples::INIT)]
    Init(Init),
    /// Mount a store; returns when the tree is usable
    ///
    /// The daemon goes on in the background and ends when the tree is unmounted, or on SIGTERM,
    /// SIGINT or SIGHUP.
    #[command(after_long_help = examples::MOUNT)]
    Mount(Mount),
    /// Unmount; returns when the store is free
    ///
    /// Where the tree is still in use, it goes from the names at once and from memory when its last
    /// user lets go.
    #[command(after_long_help = examples::UMOUNT)]
    Umount(Umount),
    /// Say how a store is: who holds it, what is in it, and its index
    ///
    /// Only 'ibifs fsck' compares the index with the tree.
    #[command(after_long_help = examples::STATUS)]
    Status(Status),
    /// Mint a new repository and print its two names
    ///
    /// The item is an original here and has a directory doc/. Its names are handed out once in the
    /// world.
    #[command(after_long_help = examples::MINT)]
    Mint(Mint),
    /// Say what is known of an item
    ///
    /// Names, state, the Archive that holds the original, language, target file, and all relations.
    #[command(after_long_help = examples::SHOW)]
    Show(Show),
    /// Declare a relation of an item
    ///
    /// It takes the place of the one of the same kind. This Archive must hold the original of one
    /// of the two ends; the related item need not be held here.
    #[command(after_long_help = examples::RELATE)]
    Relate(Relate),
    /// Take a relation of an item back
    ///
    /// The item and the related one stay as they are.
    #[command(after_long_help = examples::UNRELATE)]
    Unrelate(Unrelate),
    /// List the items of a store
    ///
    /// Removed ones are included. A line has state, rep and IBIp, with '-' for a form that is not
    /// known.
    #[command(after_long_help = examples::LS)]
    Ls(List),
    /// Make the index of a store anew from its tree
    ///
    /// What the sidecars and archive.ibi say now is believed; where a sidecar is not the one that
    /// was last believed, it says so. The store must not be mounted.
    #[command(after_long_help = examples::REINDEX)]
    Reindex(Reindex),
    /// Compare the tree of a store with its index
    ///
    /// Names whatever is not as it should be, and changes nothing without --repair. The store may
    /// be in use, except for --repair.
    #[command(after_long_help = examples::FSCK)]
    Fsck(Fsck),
    /// Read every file again and compare it with its SHA-256 digest
    ///
    /// The first time, digests are recorded. A pass that was interrupted goes on where it was. The
    /// store may be in use.
    #[command(after_long_help = examples::SCRUB)]
    Scrub(Scrub),
    /// Copy a store, mounted or not, as it is at one instant
    ///
    /// The store may be in use. The destination is a new directory or an earlier backup, which is
    /// brought up to date. The same command finishes one that was interrupted.
    #[command(after_long_help = examples::BACKUP)]
    Backup(Backup),
    /// Write items as BagIt bags or OCFL objects
    ///
    /// Other archives read these. The store may be in use; what is there already is left as it is, or
    /// gets a new version.
    #[command(after_long_help = examples::EXPORT)]
    Export(Export),
    /// Take in BagIt bags, OCFL objects, or a table of what the tree does not say
    ///
    /// All digests are compared before anything is taken. An item that is held here already stays as
    /// it is.
    #[command(after_long_help = examples::IMPORT)]
    Import(Import),
    /// Copy items to another Archive, and compare what arrives
    ///
    /// What has arrived already is not sent again: the same command goes on where it was stopped. Items
    /// that are not copied are told with the reason.
    #[command(after_long_help = examples::COPY)]
    Copy(Copy),
    /// Hand originals over to another Archive
    ///
    /// At no time do two Archives hold the original. The same command finishes a hand-over that was
    /// interrupted. What is left here is a copy.
    #[command(after_long_help = examples::TRANSFER)]
    Transfer(Transfer),
    /// Make copies originals whose originals were removed elsewhere
    ///
    /// The Archive that the sidecars name must say that it has removed them. The same command finishes
    /// what was interrupted.
    #[command(after_long_help = examples::CLAIM)]
    Claim(Claim),
    /// Answer for a store over HTTP: the Archive service, its content, pages for people
    ///
    /// It only reads, and runs beside a mount of the same store. It ends on SIGTERM or SIGINT.
    #[command(after_long_help = examples::SERVE)]
    Serve(Serve),
    /// Lead persistent links to the Archives that hold the items, over HTTP
    ///
    /// Without a command it answers until SIGTERM or SIGINT.
    #[command(after_long_help = examples::RESOLVER)]
    Resolver(Resolver),
    /// Say what an identifier says, without any store
    ///
    /// Nothing is looked up: host or address, port and date are written in the identifier itself.
    #[command(after_long_help = examples::ID)]
    Id(Id),
    /// Make a demonstration store, mount it, and say what to try
    ///
    /// The store is made beside the mount point; one that is there already is mounted as it is.
    #[command(after_long_help = examples::QUICKSTART)]
    Quickstart(Quickstart),
    /// Print a program by which a shell completes what is typed
    ///
    /// It completes commands, options, paths, identifiers and modifiers, and quotes what the shell
    /// would take for its own.
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Say what may be typed next; the programs of `ibifs completions` ask
    #[command(hide = true)]
    Complete(Complete),
}

/// `ibifs init`
#[derive(Debug, Args)]
pub struct Init {
    /// Directory of the new store
    #[arg(required_unless_present = "adopt")]
    pub store: Option<PathBuf>,
    /// Take over this directory, which holds col/, as it is
    #[arg(long, value_name = "DIR")]
    pub adopt: Option<PathBuf>,
    /// Host name that the reps are built on [default: this machine's, or one drawn at random]
    #[arg(long)]
    pub host: Option<String>,
    /// HTTP port of the host; 80 is left out of the reps
    #[arg(long)]
    pub port: Option<u16>,
    /// Address that the IBIps are built on [default: a private one drawn at random]
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<IpAddr>,
    /// Port that the IBIps are built on; 800 is left out of the IBIps
    #[arg(long, value_name = "PORT")]
    pub ip_port: Option<u16>,
    /// Seconds between two dates handed out: 60, 1, 1/10, 1/100 ... [default: 1/1000]
    #[arg(long, value_name = "SECONDS")]
    pub granularity: Option<String>,
    /// Identity of an Archive that is built anew: its service's rep, and its IBIp
    #[arg(long, value_name = "IBI")]
    pub service: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs mount`
#[derive(Debug, Args)]
pub struct Mount {
    /// Directory of the store
    pub store: PathBuf,
    /// Where to mount it
    pub mount_point: PathBuf,
    /// Mount options, joined by commas: lang=, list=all, ro, allow_other ...
    #[arg(short = 'o', value_name = "OPTIONS")]
    pub options: Vec<String>,
    /// Stay in the foreground and log to standard error
    #[arg(short, long)]
    pub foreground: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Descriptor to write to once the tree is usable
    #[arg(long, hide = true)]
    pub ready_fd: Option<i32>,
}

/// `ibifs umount`
#[derive(Debug, Args)]
pub struct Umount {
    /// Where it is mounted
    pub mount_point: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs status`
#[derive(Debug, Args)]
pub struct Status {
    /// Store or mount point [default: all that is mounted]
    pub store: Option<PathBuf>,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// `ibifs mint`
#[derive(Debug, Args)]
pub struct Mint {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// The new item is the next edition of this one
    #[arg(long, value_name = "ITEM", group = "relative")]
    pub edition_of: Option<String>,
    /// The new item is a translation of this one
    #[arg(long, value_name = "ITEM", group = "relative", requires = "lang")]
    pub translation_of: Option<String>,
    /// The new item is the metadata of this one
    #[arg(long, value_name = "ITEM", group = "relative")]
    pub metadata_of: Option<String>,
    /// Language of the translation: pt, pt-BR ...
    #[arg(long, requires = "translation_of")]
    pub lang: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
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
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Directory of the store, mounted or not
    pub store: PathBuf,
    /// Address and port to listen at; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Under which host, or host:port, others reach it [default: host and port of the Archive]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub address: Option<String>,
    /// To whom harvesters and a resolver's administrator write [default: postmaster at the Archive's host]
    #[arg(long, value_name = "NAME@HOST", value_parser = email)]
    pub email: Option<String>,
    /// URL of a resolver that includes the Archive while it is served
    #[arg(long, value_name = "URL", requires = "registration_key_file")]
    pub resolver: Option<String>,
    /// File with the key that the resolver's administrator has given for this Archive
    #[arg(long, value_name = "FILE", requires = "resolver")]
    pub registration_key_file: Option<PathBuf>,
    /// File with the tokens of those who may send items and hand originals over to this Archive
    #[arg(long, value_name = "FILE")]
    pub transfer_token_file: Option<PathBuf>,
    /// Address of a web server that passes requests on, whose connections are those of many;
    /// 127.0.0.1 and ::1 always are
    #[arg(long, value_name = "ADDRESS")]
    pub proxy: Vec<std::net::IpAddr>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

fn email(text: &str) -> Result<String, String> {
    let is_host = |host: &str| host.contains('.') && !host.split('.').any(str::is_empty);
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    match text.split_once('@') {
        Some((name, host)) if is_word(text) && !name.is_empty() && is_host(host) => {
            Ok(text.to_owned())
        }
        _ => Err("write it as name@host".to_owned()),
    }
}

/// `ibifs resolver`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Resolver {
    /// What to do instead of answering
    #[command(subcommand)]
    pub command: Option<ResolverCommand>,
    /// The resolver's database, which is made where there is none
    #[arg(long, value_name = "FILE", required = true)]
    pub db: Option<PathBuf>,
    /// Address and port to listen at; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    pub listen: std::net::SocketAddr,
    /// Under which host, or host:port, readers reach it [default: where it listens]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub address: Option<String>,
    /// Address of a web server that passes requests on, whose connections are those of many;
    /// 127.0.0.1 and ::1 always are
    #[arg(long, value_name = "ADDRESS")]
    pub proxy: Vec<std::net::IpAddr>,
    /// Take registrations by the protocol of 2009, by which anyone may register documents
    #[arg(long)]
    pub registration_2009: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// What can be done with a resolver's database.
#[derive(Debug, Subcommand)]
pub enum ResolverCommand {
    /// Register Archives by the identifiers of their services; prints a key for each
    Register(Register),
    /// Forget an Archive
    Unregister(Unregister),
    /// List the Archives that are registered, and where they are included
    List(Registered),
    /// List the actors of the protocol of 2009, or remove some
    Actors(Actors),
    /// List the documents of the protocol of 2009, or remove some
    Documents(Documents),
}

/// `ibifs resolver register`
#[derive(Debug, Args)]
pub struct Register {
    /// The resolver's database, which is made where there is none
    #[arg(long, value_name = "FILE")]
    pub db: PathBuf,
    /// Identifier of the Archive's service
    #[arg(required = true)]
    pub service: Vec<String>,
    /// File with the key, instead of one that is drawn
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `ibifs resolver unregister`
#[derive(Debug, Args)]
pub struct Unregister {
    /// The resolver's database
    #[arg(long, value_name = "FILE")]
    pub db: PathBuf,
    /// Identifier of the Archive's service
    pub service: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Options of `ibifs resolver actors`.
#[derive(Debug, Args)]
pub struct Actors {
    /// The resolver's database
    #[arg(long, value_name = "FILE")]
    pub db: PathBuf,
    /// Remove the actor with this identifier, and all that it has registered
    #[arg(long, value_name = "ACTORID")]
    pub remove: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// Options of `ibifs resolver documents`.
#[derive(Debug, Args)]
pub struct Documents {
    /// The resolver's database
    #[arg(long, value_name = "FILE")]
    pub db: PathBuf,
    /// Remove the document with this identifier, and all copies of it
    #[arg(long, value_name = "DOCUMENTID")]
    pub remove: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// `ibifs resolver list`
#[derive(Debug, Args)]
pub struct Registered {
    /// The resolver's database
    #[arg(long, value_name = "FILE")]
    pub db: PathBuf,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// `ibifs relate`
#[derive(Debug, Args)]
pub struct Relate {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Its next edition
    #[arg(long, value_name = "ITEM", group = "relation", required = true)]
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
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs unrelate`
#[derive(Debug, Args)]
pub struct Unrelate {
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "PATH-OR-IBI")]
    pub item: String,
    /// Its next edition
    #[arg(long, group = "relation", required = true)]
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
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs ls`
#[derive(Debug, Args)]
pub struct List {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// Only items whose rep or IBIp begins so
    pub prefix: Option<String>,
    /// Only items in this state: Original, Copy or Deleted
    #[arg(long)]
    pub state: Option<String>,
    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// `ibifs reindex`
#[derive(Debug, Args)]
pub struct Reindex {
    /// Directory of the store
    pub store: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs fsck`
#[derive(Debug, Args)]
pub struct Fsck {
    /// Directory of the store
    pub store: PathBuf,
    /// Mend what can be mended
    #[arg(long)]
    pub repair: bool,
    /// Go on minting from the present: the clock ran ahead, and is right now
    #[arg(long, requires = "repair")]
    pub clock_is_right: bool,
    /// Say what --repair would mend, and mend nothing
    #[arg(long, conflicts_with = "repair")]
    pub dry_run: bool,
    /// Name the originals that another Archive claims as well: its store, mount point or service's URL
    #[arg(long, value_name = "OTHER")]
    pub with: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
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
    /// Take these items for right as they are now
    #[arg(long, requires = "items", conflicts_with = "dry_run")]
    pub accept: bool,
    /// Compare only; record nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Begin anew, wherever the last pass stopped
    #[arg(long, conflicts_with = "items")]
    pub restart: bool,
    /// Read so many bytes a second at most; K, M and G are powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub rate: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `50M` and the like; at least 1.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|number| *number > 0)
        .ok_or_else(|| "not a number of bytes, such as 500K or 50M".to_owned())
}

/// `ibifs backup`
#[derive(Debug, Args)]
pub struct Backup {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// A new directory, or an earlier backup, which is brought up to date
    #[arg(value_name = "DEST")]
    pub destination: PathBuf,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `ibifs export`
#[derive(Debug, Args)]
pub struct Export {
    /// A bag for each item (BagIt 1.0, RFC 8493)
    #[arg(long, group = "format", required = true)]
    pub bagit: bool,
    /// An object for each item, in a storage root (OCFL 1.1)
    #[arg(long, group = "format", required = true)]
    pub ocfl: bool,
    /// Path in a mount or store, or an identifier
    #[arg(value_name = "ITEM", required = true)]
    pub items: Vec<String>,
    /// A directory for the bags, or the storage root; made where it is missing
    #[arg(value_name = "DEST")]
    pub destination: PathBuf,
    /// Store or mount point, where identifiers alone are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `ibifs import`
#[derive(Debug, Args)]
pub struct Import {
    /// Store or mount point
    #[arg(value_name = "STORE-OR-MNT")]
    pub place: PathBuf,
    /// A bag, an OCFL object or storage root, a directory that holds some, or a table (CSV)
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The table is right where an item says something else
    #[arg(long)]
    pub replace: bool,
    /// Give files to the users and groups, by number, that they belonged to
    #[arg(long)]
    pub same_owner: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Which items are copied or handed over.
#[derive(Debug, Args)]
pub struct Selection {
    /// Store or mount point, where identifiers alone or no items are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// All items whose rep or IBIp begins so
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// All items of this year, by their identifiers
    #[arg(long, value_name = "YEAR")]
    pub year: Option<u32>,
    /// With each item, the item that is its metadata
    #[arg(long)]
    pub with_metadata: bool,
    /// Items as well that were removed at the destination
    #[arg(long)]
    pub bring_back: bool,
    /// File with the token by which the Archive at a URL knows who may send items to it
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `ibifs copy`
#[derive(Debug, Args)]
pub struct Copy {
    /// Items, by their paths or identifiers, and last the store, mount point or URL of the Archive that
    /// they are copied to
    #[arg(value_name = "ITEM... DEST", required = true)]
    pub paths: Vec<String>,
    /// All items in this state: Original or Copy
    #[arg(long, value_name = "STATE")]
    pub state: Option<String>,
    /// Which items, and how.
    #[command(flatten)]
    pub selection: Selection,
}

/// `ibifs transfer`
#[derive(Debug, Args)]
pub struct Transfer {
    /// Items, by their paths or identifiers, and last the store, mount point or URL of the Archive that
    /// is to hold the originals
    #[arg(value_name = "ITEM... DEST", required = true)]
    pub paths: Vec<String>,
    /// All items whose hand-over was begun and is not finished
    #[arg(long)]
    pub pending: bool,
    /// Which items, and how.
    #[command(flatten)]
    pub selection: Selection,
}

/// `ibifs claim`
#[derive(Debug, Args)]
pub struct Claim {
    /// Items of which copies are held here, by their paths or identifiers
    #[arg(value_name = "ITEM", required = true)]
    pub items: Vec<String>,
    /// Store, mount point, or URL of the service, of the Archive where the originals were removed
    #[arg(long, value_name = "OTHER")]
    pub from: String,
    /// Store or mount point, where identifiers alone are given
    #[arg(long, value_name = "STORE-OR-MNT", env = "IBIFS_STORE")]
    pub store: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `ibifs id`
#[derive(Debug, Args)]
pub struct Id {
    /// What to do with it
    #[command(subcommand)]
    pub command: IdCommand,
}

/// What can be done with an identifier alone.
#[derive(Debug, Subcommand)]
pub enum IdCommand {
    /// Say what an identifier says: host or address, port, date
    Explain {
        /// A rep or an IBIp
        ibi: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Succeed if it is a good identifier
    Check {
        /// A rep or an IBIp
        ibi: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// `ibifs quickstart`
#[derive(Debug, Args)]
pub struct Quickstart {
    /// Where to mount the demonstration store
    #[arg(default_value = "mnt/demo")]
    pub mount_point: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `ibifs completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// For which shell
    pub shell: Shell,
}

/// `ibifs complete`
#[derive(Debug, Args)]
pub struct Complete {
    /// Which shell asks
    pub shell: Shell,
    /// The words before the cursor, the program left out; of bash, the line and its last word
    #[arg(last = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}
