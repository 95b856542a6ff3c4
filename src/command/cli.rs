//! The command line as a value: commands, arguments and their help. Reads and writes nothing.
//!
//! Each group of commands has a file with their arguments. `groups` orders the commands in the help,
//! `translated` and `refusal` translate help and errors, `next` computes completions for the shells.

mod care;
mod examples;
mod exchange;
mod groups;
mod items;
mod mount_helper;
mod next;
mod refusal;
mod services;
mod shell;
mod store;
mod translated;
mod value;
mod world;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::formats::item::State;

pub use care::{Audit, Backup, Copies, Fsck, Reindex, Repair, Report, Scrub};
pub use exchange::{Claim, Copy, Export, Import, Selection, Transfer};
pub use groups::grouped;
pub use items::{
    Cite, Cosign, Find, History, Id, IdCommand, List, Mint, Prove, Publish, Relate, Remove,
    Restore, Seal, Show, Unrelate, Unseal, Verify, Watch, Withdraw, Work,
};
pub use mount_helper::MountHelper;
pub use next::{Candidates, ValueKind, Word, next};
pub use refusal::LocalizedErrors;
pub use services::{
    Actors, Documents, LogForm, Monitoring, PreviewHelper, Register, Registered, Resolver,
    ResolverCommand, Serve, TextHelper, Unregister,
};
pub use shell::{Complete, Completions, Shell};
pub use store::{Init, Mount, Quickstart, Status, Umount, Upn};
pub use translated::translated;
pub use value::{Invalid, LogPoint, byte_count, bytes};
pub use world::{World, WorldCommand, WorldKeep, WorldStatus};

/// Archives as a filesystem: every identifier is a path.
#[derive(Debug, Parser)]
#[command(
    name = "ibifs",
    version,
    about,
    disable_help_subcommand = true,
    after_help = "'ibifs COMMAND -h' lists the options of a command; '--help' adds details and examples.",
    after_long_help = examples::IBIFS
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a store, or adopt a col/ tree of repositories
    ///
    /// Mints the item of the Archive's service in it, and prints how the identifiers minted there
    /// begin. They are built on the name of the host, and never change.
    #[command(after_long_help = examples::INIT)]
    Init(Init),
    /// Mount a store; returns when the tree is usable
    ///
    /// The daemon runs in the background and ends when the tree is unmounted, or on SIGTERM, SIGINT
    /// or SIGHUP.
    #[command(after_long_help = examples::MOUNT)]
    Mount(Mount),
    /// Unmount; returns when the store is free
    ///
    /// A tree that is still in use disappears from the names at once, and from memory when its last
    /// user closes it.
    #[command(after_long_help = examples::UMOUNT)]
    Umount(Umount),
    /// Show the state of a store: its user, its items and its index
    ///
    /// Only 'ibifs fsck' compares the index with the tree.
    #[command(after_long_help = examples::STATUS)]
    Status(Status),
    /// Mint a new item and print its two identifiers
    ///
    /// This Archive holds the original, which has a directory doc/. No other item in the world gets
    /// the same identifiers.
    #[command(after_long_help = examples::MINT)]
    Mint(Mint),
    /// Run a command that reads and writes items without the mount
    ///
    /// The command finds the directories of the store under the paths given. What has changed is taken in after it.
    #[command(after_long_help = examples::WORK)]
    Work(Work),
    /// Publish a draft
    ///
    /// Lets all users into the item's directory, and prints the link of the item and of its page.
    #[command(after_long_help = examples::PUBLISH)]
    Publish(Publish),
    /// Let no file of an item change any more
    #[command(after_long_help = examples::SEAL)]
    Seal(Seal),
    /// Let the files of a sealed item change again
    #[command(after_long_help = examples::UNSEAL)]
    Unseal(Unseal),
    /// Withdraw an item: keep it, and show it to its owner alone
    ///
    /// Title, creators, date and reason stay public, and so do its identifiers.
    #[command(after_long_help = examples::WITHDRAW)]
    Withdraw(Withdraw),
    /// Show an item again that was withdrawn, or put one back
    ///
    /// Lets all users into the item's directory, and removes date and reason from its sidecar. With --from, puts an item that was
    /// removed back as it is in a backup.
    #[command(after_long_help = examples::RESTORE)]
    Restore(Restore),
    /// Remove an item with all its files
    ///
    /// Its identifiers, its citation and the reason stay. An item that could not be removed completely is left as it is.
    #[command(after_long_help = examples::REMOVE)]
    Remove(Remove),
    /// Show what is known of an item
    ///
    /// Identifiers, state, the Archive that holds the original, language, target file, and all
    /// relations.
    #[command(after_long_help = examples::SHOW)]
    Show(Show),
    /// Print the citation of an item in a style
    ///
    /// It is made from the item's metadata, as one line of text.
    #[command(after_long_help = examples::CITE)]
    Cite(Cite),
    /// Find items by words of their descriptions
    ///
    /// Prints the identifiers and titles of the items that have all of the words, the best first.
    #[command(after_long_help = examples::FIND)]
    Find(Find),
    /// Print what was done to an item, when and by whom
    ///
    /// A store keeps a log of that with the pair 'history yes' in archive.ibi.
    #[command(after_long_help = examples::HISTORY)]
    History(History),
    /// Print a proof of the last event of an item
    ///
    /// It says that the event is in the log of the store, and can be checked years later without the store.
    #[command(after_long_help = examples::PROVE)]
    Prove(Prove),
    /// Have witnesses cosign the log of a store
    ///
    /// The witnesses are those that archive.ibi names. A reader who trusts one of them knows later that the log was not rewritten.
    #[command(after_long_help = examples::COSIGN)]
    Cosign(Cosign),
    /// Check a proof of an event
    ///
    /// Needs no store: the proof has the event, the hashes that lead to a checkpoint of the log, and its signatures.
    #[command(after_long_help = examples::VERIFY)]
    Verify(Verify),
    /// Print what happens to the items of a store
    ///
    /// A line of JSON for each event: an item was added, changed or removed. It goes on from a
    /// position that it has printed before.
    #[command(after_long_help = examples::WATCH)]
    Watch(Watch),
    /// Declare a relation of an item
    ///
    /// It replaces the relation of the same kind. This Archive must hold the original of one of the
    /// two ends; the related item need not be held here.
    #[command(after_long_help = examples::RELATE)]
    Relate(Relate),
    /// Remove a relation of an item
    ///
    /// The item and the related one stay as they are.
    #[command(after_long_help = examples::UNRELATE)]
    Unrelate(Unrelate),
    /// List the items of a store
    ///
    /// Removed items are included. A line has state, rep and IBIp, with '-' for a form that is not
    /// known.
    #[command(after_long_help = examples::LS)]
    Ls(List),
    /// Rebuild the index of a store from its tree
    ///
    /// The sidecars and archive.ibi are accepted as they are now; a sidecar that has changed since
    /// it was last accepted is reported. The store must not be mounted.
    #[command(after_long_help = examples::REINDEX)]
    Reindex(Reindex),
    /// Check the tree of a store against its index, and repair it
    ///
    /// Reports everything that is wrong, and changes nothing without --repair. The store may be in
    /// use, except for --repair.
    #[command(after_long_help = examples::FSCK)]
    Fsck(Fsck),
    /// Read every file and compare it with its SHA-256 digest
    ///
    /// The first pass records the digests. A pass that was interrupted continues where it stopped.
    /// The store may be in use.
    #[command(after_long_help = examples::SCRUB)]
    Scrub(Scrub),
    /// Mend damaged files from good copies
    ///
    /// Reads the items, and fetches the recorded content of each damaged or lost file from the places given. The damaged file
    /// is kept.
    #[command(after_long_help = examples::REPAIR)]
    Repair(Repair),
    /// Compare items with their copies in another place, and mend them
    ///
    /// Reads the files of both places, those that were not compared for the longest time first. What is damaged is mended
    /// from the other place; originals only where archive.ibi says so.
    #[command(after_long_help = examples::AUDIT)]
    Audit(Audit),
    /// List the known copies of items, and when each was last compared
    ///
    /// A copy counts when its content was compared with the digests of the item, by 'ibifs audit',
    /// 'ibifs copy' or 'ibifs transfer'. archive.ibi says how many copies are wanted.
    #[command(after_long_help = examples::COPIES)]
    Copies(Copies),
    /// Report what a store can show of its preservation
    ///
    /// The twenty cells of the levels of the NDSA: each is met or not, with a figure and the command
    /// that shows it, or is the archivist's to state.
    #[command(after_long_help = examples::REPORT)]
    Report(Report),
    /// Copy a store, mounted or not, as it is at one instant
    ///
    /// The store may be in use. The destination is a new directory or an earlier backup, which is
    /// brought up to date. The same command finishes one that was interrupted.
    #[command(after_long_help = examples::BACKUP)]
    Backup(Backup),
    /// Write items as BagIt bags or OCFL objects
    ///
    /// Other archives read these formats. The store may be in use. A package that exists already
    /// stays as it is, or gets a new version.
    #[command(after_long_help = examples::EXPORT)]
    Export(Export),
    /// Import BagIt bags, OCFL objects, or a table of relations
    ///
    /// All digests are verified before anything is imported. An item that is held here already
    /// stays as it is.
    #[command(after_long_help = examples::IMPORT)]
    Import(Import),
    /// Copy items to another Archive, and verify what arrives
    ///
    /// What has arrived already is not sent again: the same command continues where it was stopped.
    /// Items that are not copied are reported with the reason.
    #[command(after_long_help = examples::COPY)]
    Copy(Copy),
    /// Transfer originals to another Archive
    ///
    /// At no time do two Archives hold the original. The same command finishes a transfer that was
    /// interrupted. What is left here is a copy.
    #[command(after_long_help = examples::TRANSFER)]
    Transfer(Transfer),
    /// Make copies originals whose originals were removed elsewhere
    ///
    /// The Archive that the sidecars name must confirm that it has removed them. The same command
    /// finishes what was interrupted.
    #[command(after_long_help = examples::CLAIM)]
    Claim(Claim),
    /// Serve a store over HTTP: Archive service, content, web pages
    ///
    /// It only reads, and can run beside a mount of the same store. It ends on SIGTERM or SIGINT.
    #[command(after_long_help = examples::SERVE)]
    Serve(Serve),
    /// Redirect persistent links to the Archives that hold the items
    ///
    /// Without a command it serves over HTTP until SIGTERM or SIGINT.
    #[command(after_long_help = examples::RESOLVER)]
    Resolver(Resolver),
    /// Mount the items of other Archives, read only
    ///
    /// Each item of the federation is at the path of its identifier. What is read is kept in a cache,
    /// and verified. Nothing is asked before something is looked up.
    #[command(after_long_help = examples::WORLD)]
    World(World),
    /// Explain or check an identifier, without a store
    ///
    /// Nothing is looked up: host or address, port and date are written in the identifier itself.
    #[command(after_long_help = examples::ID)]
    Id(Id),
    /// List or set the prefixes that complete 'upn:' names
    ///
    /// A name with a whole identifier needs no table: the identifier says which item it is.
    #[command(after_long_help = examples::UPN)]
    Upn(Upn),
    /// Create a demonstration store, mount it, and print what to try
    ///
    /// The store is created beside the mount point; one that exists already is mounted as it is.
    #[command(after_long_help = examples::QUICKSTART)]
    Quickstart(Quickstart),
    /// Print the completion program for a shell
    ///
    /// It completes commands, options, paths, identifiers and modifiers, and quotes the characters
    /// that the shell would interpret.
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Say what may be typed next; the programs of `ibifs completions` ask
    #[command(hide = true)]
    Complete(Complete),
    /// Draw the file at standard input; `ibifs serve` runs it without rights
    #[command(hide = true)]
    PreviewHelper(PreviewHelper),
    /// Print the text of the PDF file at standard input; searches run it without rights
    #[command(hide = true)]
    TextHelper(TextHelper),
}

/// The options of a command's output.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Output {
    /// Print JSON, as ibifs-json(7) describes it
    #[arg(long)]
    pub json: bool,
}

/// The options by which other machines are reached.
#[derive(Clone, Debug, Default, Args)]
pub struct NetworkOptions {
    /// File with certificates of more authorities, in PEM form
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// A state by which items are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ItemState {
    /// The original is held here
    Original,
    /// A copy is held here
    Copy,
    /// It was removed, and its name is left
    Deleted,
}

impl From<ItemState> for State {
    fn from(state: ItemState) -> State {
        match state {
            ItemState::Original => State::Original,
            ItemState::Copy => State::Copy,
            ItemState::Deleted => State::Deleted,
        }
    }
}
