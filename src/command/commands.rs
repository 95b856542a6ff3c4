//! The commands, on the same library as the mount. A command that changes a mounted store works through the
//! mount, with the paths that a shell would use.

mod access;
mod audit;
mod backup;
mod check;
mod cite;
mod complete;
mod copies;
mod daemon;
mod explain;
mod export;
mod find;
mod history;
mod import;
mod init;
mod items;
mod listen;
mod mint;
mod mount_helper;
mod mounting;
mod preview_helper;
mod print;
mod publish;
mod quickstart;
mod relations;
mod remote;
mod repair;
mod report;
mod resolver;
mod scrub;
mod seal;
mod secret;
mod serve;
mod start;
mod status;
mod text_helper;
mod transfer;
mod upn;
mod watch;
mod withdraw;
mod work;
mod world;
mod world_companion;

use std::io::Write;
use std::path::Path;

use crate::archive::Archive;
use crate::command::cli::{Command, NetworkOptions};
use crate::command::exit::{Exit, Failure};
use crate::command::progress::ProgressLine;
use crate::command::terminal::ManyLines;
use crate::http::client::Network;
use ibi::message;
use ibi::message::Localize;
use ibi::relation::Language;
pub use mount_helper::run as mount_as_helper;

/// Runs a command.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Init(options) => init::init(&options),
        Command::Mount(options) => mounting::mount(&options),
        Command::Umount(options) => mounting::umount(&options),
        Command::Status(options) => status::run(&options),
        Command::Mint(options) => mint::mint(&options),
        Command::Publish(options) => publish::run(&options),
        Command::Seal(options) => seal::seal(&options),
        Command::Unseal(options) => seal::unseal(&options),
        Command::Withdraw(options) => withdraw::withdraw(&options),
        Command::Restore(options) => withdraw::restore(&options),
        Command::Remove(options) => withdraw::remove(&options),
        Command::Work(options) => work::run(&options),
        Command::Show(options) => items::show(&options),
        Command::Cite(options) => cite::run(&options),
        Command::Find(options) => find::run(&options),
        Command::History(options) => history::history(&options),
        Command::Prove(options) => history::prove(&options),
        Command::Cosign(options) => history::cosign(&options),
        Command::Verify(options) => history::verify(&options),
        Command::Watch(options) => watch::run(&options),
        Command::Relate(options) => relations::relate(&options),
        Command::Unrelate(options) => relations::unrelate(&options),
        Command::Ls(options) => items::list(&options),
        Command::Reindex(options) => check::reindex(&options),
        Command::Fsck(options) => check::fsck(&options),
        Command::Copies(options) => copies::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Backup(options) => backup::run(&options),
        Command::Scrub(options) => scrub::run(&options),
        Command::Audit(options) => audit::run(&options),
        Command::Repair(options) => repair::run(&options),
        Command::Export(options) => export::run(&options),
        Command::Import(options) => import::run(&options),
        Command::Copy(options) => transfer::copy(&options),
        Command::Transfer(options) => transfer::hand_over(&options),
        Command::Claim(options) => transfer::claim(&options),
        Command::Serve(options) => serve::run(&options),
        Command::Resolver(options) => resolver::run(&options),
        Command::World(options) => world::run(&options),
        Command::Upn(options) => upn::run(&options),
        Command::Id(options) => items::id(&options),
        Command::Quickstart(options) => quickstart::run(&options),
        Command::Completions(options) => complete::print(&options),
        Command::Complete(options) => complete::run(&options),
        Command::PreviewHelper(options) => preview_helper::run(&options),
        Command::TextHelper(options) => text_helper::run(&options),
    }
}

/// Writes to standard output. A closed pipe is not an error: the reader needs no more.
fn put_out(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes lines for a person to standard output.
fn say(text: &str) -> Result<(), Failure> {
    put_out(&ManyLines(text).to_string()).map_err(|error| cannot_print(&error))
}

/// The progress of a command over all items; their number comes from the index, if it can be read.
fn counting(store: &Path) -> ProgressLine {
    ProgressLine::of_items(|| {
        let archive = Archive::open_read_only(store).ok()?;
        archive.store().held_items().ok()
    })
}

/// The failure of standard output.
fn cannot_print(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, message!("standard output: {error}", error))
}

/// Returns whom a command trusts, and by which proxies it goes.
fn network(options: &NetworkOptions) -> Result<Network, Failure> {
    Network::new(options.ca_file.as_deref()).map_err(usage)
}

fn usage(message: impl Localize) -> Failure {
    Failure::new(Exit::Usage, message)
}

/// The failure of a file that the user has named.
fn failed_at(path: &Path, exit: Exit, error: &impl Localize) -> Failure {
    let path = path.display();
    Failure::new(exit, message!("{path}: {error}", path, error))
}

fn language(text: Option<&str>) -> Result<Option<Language>, Failure> {
    text.map(Language::parse).transpose().map_err(usage)
}
