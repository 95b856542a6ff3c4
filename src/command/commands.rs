//! What each command does, on the same library as the mount. On a mounted store whatever changes
//! goes through the mount, by the same names a shell would use.

mod backup;
mod complete;
mod door;
mod export;
mod import;
mod mount_helper;
mod print;
mod quickstart;
mod resolver;
mod scrub;
mod secret;
mod serve;
mod start;
mod status;
mod transfer;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::archive::tree::{Tree, TreeError};
use crate::archive::{
    Archive, ArchiveError, Finding, Holder, Process, Relative, Setup, SystemClock, holder,
    is_held_by,
};
use crate::command::cli::{
    Command, Fsck, Id, IdCommand, Init, List, Mint, Mount, Reindex, Relate, Show, Umount, Unrelate,
};
use crate::command::exit::{Exit, Failure};
use crate::command::language::told;
use crate::command::logging;
use crate::command::progress::Progress;
use crate::command::terminal::Lines;
use crate::formats::item::{Names, State};
use door::{Door, Named};
use ibi::Ibi;
use ibi::distributor::Granularity;
use ibi::relation::{Language, RelationKind};
pub use mount_helper::run as mount_as_helper;

/// How long `umount` waits until the daemon has let go of the store.
const UMOUNT_PATIENCE: Duration = Duration::from_secs(60);

/// How long those who still use an unmounted tree may keep its daemon at work.
const UMOUNT_GRACE: Duration = Duration::from_secs(1);

/// Runs a command.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Init(options) => init(&options),
        Command::Mount(options) => mount(&options),
        Command::Umount(options) => umount(&options),
        Command::Status(options) => status::run(&options),
        Command::Mint(options) => mint(&options),
        Command::Show(options) => show(&options),
        Command::Relate(options) => relate(&options),
        Command::Unrelate(options) => unrelate(&options),
        Command::Ls(options) => list(&options),
        Command::Reindex(options) => reindex(&options),
        Command::Fsck(options) => fsck(&options),
        Command::Backup(options) => backup::run(&options),
        Command::Scrub(options) => scrub::run(&options),
        Command::Export(options) => export::run(&options),
        Command::Import(options) => import::run(&options),
        Command::Copy(options) => transfer::copy(&options),
        Command::Transfer(options) => transfer::hand_over(&options),
        Command::Claim(options) => transfer::claim(&options),
        Command::Serve(options) => serve::run(&options),
        Command::Resolver(options) => resolver::run(&options),
        Command::Id(options) => id(&options),
        Command::Quickstart(options) => quickstart::run(&options),
        Command::Completions(options) => complete::print(&options),
        Command::Complete(options) => complete::run(&options),
    }
}

/// Writes to standard output; a reader that has gone away is no failure of ours.
fn put_out(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes lines for a person to standard output.
fn say(text: &str) -> Result<(), Failure> {
    put_out(&Lines(text).to_string())
        .map_err(|error| Failure::new(Exit::Failed, format!("standard output: {error}")))
}

/// Counts items; the index says how many there will be, where it can be read.
fn counting(store: &Path) -> Progress {
    Progress::of_items(|| {
        let archive = Archive::open_read_only(store).ok()?;
        archive.store().held_items().ok()
    })
}

fn usage(sentence: impl ToString) -> Failure {
    Failure::new(Exit::Usage, sentence.to_string())
}

fn init(options: &Init) -> Result<Exit, Failure> {
    let store = match (&options.store, &options.adopt) {
        (None, Some(adopted)) => adopted_store(adopted)?,
        (Some(store), None) => store.clone(),
        (Some(store), Some(adopted)) if adopted_store(adopted)? == *store => store.clone(),
        (Some(store), Some(adopted)) => {
            return Err(usage(format!(
                "a tree is taken over where it is: move '{}' to '{}' and give --adopt alone",
                adopted.display(),
                store.join("col").display()
            )));
        }
        (None, None) => return Err(usage("name the directory of the new store")),
    };
    let granularity = options
        .granularity
        .as_deref()
        .map(Granularity::parse)
        .transpose()
        .map_err(usage)?;
    let setup = Setup {
        host: options.host.clone(),
        port: options.port,
        ip: options.ip,
        ip_port: options.ip_port,
        granularity,
        service: service_names(&options.service)?,
    };
    let progress = Progress::of_items(|| items_below(&store));
    let (archive, report) = Archive::init(&store, &setup, Box::new(SystemClock), &mut |items| {
        progress.at(items);
    })?;
    drop(progress);
    for finding in &report.findings {
        eprint!("ibifs: {}", print::finding_line(finding, false));
    }
    let facts = archive.facts();
    say(&if options.json {
        print::facts_json(&store, facts)
    } else {
        told(format_args!(
            "{store} is an Archive now: reps begin {}, IBIps {}\nmount it with 'ibifs mount {store} MNT'\n",
            facts.rep_prefix()?,
            facts.ibip_prefix(),
            store = store.display()
        ))
    })?;
    archive.close();
    Ok(Exit::Done)
}

/// How many items a tree has that is taken over: four levels of directories, which are quickly read.
fn items_below(store: &Path) -> Option<u64> {
    let tree = Tree::open_as_it_is(store).ok()?;
    let mut count = 0;
    let counted = tree.each_item::<TreeError>(|_, _| {
        count += 1;
        Ok(())
    });
    counted.ok().map(|()| count)
}

/// The store of a tree that is taken over: the directory that holds `col/`, or `col/` itself.
fn adopted_store(directory: &Path) -> Result<PathBuf, Failure> {
    if directory.join("col").is_dir() {
        return Ok(directory.to_owned());
    }
    let resolved = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    match (resolved.file_name(), resolved.parent()) {
        (Some(name), Some(parent)) if name == "col" && resolved.is_dir() => Ok(parent.to_owned()),
        _ => Err(Failure::new(
            Exit::NotFound,
            format!(
                "'{}' holds no directory col to take over; put the tree of repositories there",
                directory.display()
            ),
        )),
    }
}

fn service_names(texts: &[String]) -> Result<Option<Names>, Failure> {
    let ibis: Result<Vec<Ibi>, _> = texts.iter().map(|text| Ibi::parse(text)).collect();
    Ok(Names::collect(ibis.map_err(usage)?))
}

fn mount(options: &Mount) -> Result<Exit, Failure> {
    let settings =
        crate::fuse::mount::Settings::parse(&options.options, |name| std::env::var(name).ok())?;
    if !options.foreground {
        let exit = start::in_background(options)?;
        if exit == Exit::Done {
            mounted(options)?;
        }
        return Ok(exit);
    }
    if let Some(level) = settings.log {
        logging::set_level(level);
    }
    let starter = start::Starter::new(options);
    crate::fuse::mount::serve(&options.store, &options.mount_point, &settings, &starter)?;
    Ok(Exit::Done)
}

/// Says that a store is mounted, to whoever wants to read it.
fn mounted(options: &Mount) -> Result<(), Failure> {
    if options.json {
        say(&print::mount_json(&options.store, &options.mount_point))
    } else {
        Ok(())
    }
}

fn umount(options: &Umount) -> Result<Exit, Failure> {
    let shown = options.mount_point.display();
    let path = crate::fuse::mount::resolve(&options.mount_point);
    let mounted = crate::fuse::mount::mounts()
        .into_iter()
        .filter(crate::fuse::mount::Mounted::is_ours)
        .rfind(|mount| mount.mount_point == path);
    let Some(mounted) = mounted else {
        return Err(Failure::new(
            Exit::NotFound,
            format!("no store is mounted at '{shown}'"),
        ));
    };
    let before = holder(&mounted.source);
    let gone = crate::fuse::mount::cut_off_killed(&mounted.mount_point);
    if !gone {
        crate::fuse::mount::unmount(&mounted.mount_point).map_err(|refused| {
            let who = format!("see who uses it with 'fuser -m {shown}'");
            let message = format!("'{shown}' could not be unmounted: {refused}; {who}");
            Failure::new(Exit::Busy, message)
        })?;
    }
    // Not a daemon that somebody has started since.
    let ours = || holder(&mounted.source).filter(|holder| Some(holder) == before.as_ref());
    let started = Instant::now();
    let mut told = false;
    while let Some(holder) = ours() {
        if started.elapsed() > UMOUNT_PATIENCE {
            return Err(Failure::new(
                Exit::Busy,
                format!(
                    "'{shown}' is unmounted, but its daemon does not end; end process {}",
                    holder.pid.unwrap_or(0)
                ),
            ));
        }
        // Somebody sits in the tree and keeps the daemon at work: it is asked to end all the same.
        if !told && started.elapsed() > UMOUNT_GRACE {
            told = true;
            if !end_daemon(&mounted.source, &holder) && ours().is_some() {
                return Err(Failure::new(
                    Exit::Busy,
                    format!(
                        "'{shown}' is unmounted, but its daemon does not end, and the process that \
                         '{lock}' names is not seen to be the daemon: none was ended; find it with \
                         'fuser -v {lock}'",
                        lock = mounted.source.join("lock").display()
                    ),
                ));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if options.json {
        say(&print::mount_json(&mounted.source, &mounted.mount_point))?;
    }
    Ok(Exit::Done)
}

/// Asks the daemon of a store to end, and nobody else; says whether it was asked.
fn end_daemon(store: &Path, holder: &Holder) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let number = holder.pid.and_then(|pid| i32::try_from(pid).ok());
    // Opened first: what is then found out is about the same process, whoever has its number later.
    let daemon = number
        .and_then(Pid::from_raw)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let Some((daemon, pid)) = daemon.zip(holder.pid) else {
        return false;
    };
    is_held_by(store, pid) && pidfd_send_signal(&daemon, Signal::TERM).is_ok()
}

fn language(text: Option<&str>) -> Result<Option<Language>, Failure> {
    text.map(Language::parse).transpose().map_err(usage)
}

fn mint(options: &Mint) -> Result<Exit, Failure> {
    let door = Door::at(&options.place)?;
    let language = language(options.lang.as_deref())?;
    let item = |text: &str| {
        let named = door::find(text, Some(&door.store))?;
        Ok::<Names, Failure>(named.names)
    };
    let relative = match (
        &options.edition_of,
        &options.translation_of,
        &options.metadata_of,
        language,
    ) {
        (Some(of), ..) => Some(Relative::EditionOf(item(of)?)),
        (_, Some(of), _, Some(language)) => Some(Relative::TranslationOf(item(of)?, language)),
        (_, _, Some(of), _) => Some(Relative::MetadataOf(item(of)?)),
        _ => None,
    };
    let names = mint_through(&door, relative.as_ref())?;
    say(&if options.json {
        print::names_json(&names)
    } else {
        print::names_text(&names)
    })?;
    Ok(Exit::Done)
}

/// Mints through the mount where there is one, by the same mkdir that a shell would use.
fn mint_through(door: &Door, relative: Option<&Relative>) -> Result<Names, Failure> {
    let Some(mount_point) = &door.mount_point else {
        return door.change(|archive| Ok(archive.mint(&Process, relative, None)?.names));
    };
    let label = format!("mint-{}", std::process::id());
    let path = match relative {
        None => mount_point.join(".mint").join(&label),
        Some(relative) => {
            door.read()?.check_relative(&Process, relative)?;
            let tail = match relative {
                Relative::EditionOf(_) => "!".to_owned(),
                Relative::TranslationOf(_, language) => format!("+({language})"),
                Relative::MetadataOf(_) => ":".to_owned(),
            };
            mount_point.join(format!("{}{tail}", relative.source().preferred()))
        }
    };
    let mode = rustix::fs::Mode::from_raw_mode(0o777);
    match (rustix::fs::mkdir(door::bytes(&path), mode), relative) {
        (Ok(()), _) => {}
        // The last edition of an item without a next one is the item: the name is taken.
        (Err(rustix::io::Errno::EXIST), Some(relative)) => return mint_and_relate(door, relative),
        (Err(error), _) => {
            if error == rustix::io::Errno::AGAIN {
                door.read()?.check_wait()?;
            }
            return Err(door::refused("minting", error));
        }
    }
    let names = minted_names(&path)?;
    // What is minted so is filled by hand, in `doc/`.
    if let Err(error) = rustix::fs::mkdir(door::bytes(&path.join("doc")), mode)
        && error != rustix::io::Errno::EXIST
    {
        return Err(door::refused("making doc/ in what was minted", error));
    }
    if relative.is_none() {
        let _ = rustix::fs::rmdir(door::bytes(&path));
    }
    Ok(names)
}

/// Where mkdir cannot say it: mints first and relates then.
fn mint_and_relate(door: &Door, relative: &Relative) -> Result<Names, Failure> {
    let names = mint_through(door, None)?;
    let named = Named {
        door: door.clone(),
        names: relative.source().clone(),
    };
    relate_through(&named, &relative.kind(), &names)?;
    Ok(names)
}

fn minted_names(path: &Path) -> Result<Names, Failure> {
    let read = |attribute: &str| {
        let text = door::attribute_of(path, attribute)?;
        Ibi::parse(&text).ok()
    };
    Names::collect(
        [read("user.ibi.rep"), read("user.ibi.ibip")]
            .into_iter()
            .flatten(),
    )
    .ok_or_else(|| Failure::new(Exit::Failed, "the mount does not say what it has minted"))
}

fn show(options: &Show) -> Result<Exit, Failure> {
    let named = door::find(&options.item, options.store.as_deref())?;
    let archive = named.door.read()?;
    let item = archive.store().find_by_names(&named.names)?;
    let Some(item) = item else {
        return Err(crate::archive::ArchiveError::Unknown {
            name: named.names.preferred(),
        }
        .into());
    };
    let relations = archive.relations(&item)?;
    let claims = archive.claims(&item)?;
    let aliases = archive.store().aliases_of(item.id)?;
    say(&if options.json {
        print::item_json(&item, &relations, &claims, &aliases)
    } else {
        print::item_text(&item, &relations, &claims, &aliases)
    })?;
    Ok(Exit::Done)
}

fn relate(options: &Relate) -> Result<Exit, Failure> {
    let named = door::find(&options.item, options.store.as_deref())?;
    let language = language(options.lang.as_deref())?;
    let (kind, target) = match (
        &options.next_edition,
        &options.translation,
        &options.metadata,
        language,
    ) {
        (Some(target), ..) => (RelationKind::NextEdition, target),
        (_, Some(target), _, Some(language)) => (RelationKind::Translation(language), target),
        (_, _, Some(target), _) => (RelationKind::Metadata, target),
        _ => {
            return Err(usage(
                "say which relation: --next-edition, --translation or --metadata",
            ));
        }
    };
    let target = match door::find(target, Some(&named.door.store)) {
        Ok(target) => target.names,
        // What is not held here can be pointed to all the same.
        Err(failure) if failure.exit == Exit::NotFound => {
            Names::from(Ibi::parse(target).map_err(usage)?)
        }
        Err(failure) => return Err(failure),
    };
    relate_through(&named, &kind, &target)?;
    if options.json {
        say(&print::relation_json(&named.names, &kind, Some(&target)))?;
    }
    Ok(Exit::Done)
}

/// `translation(pt)` is the attribute `user.ibi.translation.pt`.
fn attribute_name(kind: &RelationKind) -> String {
    let pair = kind.pair_name();
    let name = pair.strip_prefix("ibi.").unwrap_or(&pair);
    format!("user.ibi.{}", name.replace('(', ".").replace(')', ""))
}

fn refused_relation(kind: &RelationKind, named: &Named, error: rustix::io::Errno) -> Failure {
    let (kind, names) = (kind.pair_name(), &named.names);
    let kind = kind.strip_prefix("ibi.").unwrap_or(&kind);
    door::refused(&format!("ibi.{kind} of {names}"), error)
}

fn relate_through(named: &Named, kind: &RelationKind, target: &Names) -> Result<(), Failure> {
    let Some(path) = named.door.path_in_mount(&named.names) else {
        return named
            .door
            .change(|archive| archive.relate(&Process, &named.names, kind, target));
    };
    rustix::fs::setxattr(
        door::bytes(&path),
        attribute_name(kind),
        target.preferred().as_bytes(),
        rustix::fs::XattrFlags::empty(),
    )
    .map_err(|error| refused_relation(kind, named, error))
}

fn unrelate(options: &Unrelate) -> Result<Exit, Failure> {
    let named = door::find(&options.item, options.store.as_deref())?;
    let kind = match (
        options.next_edition,
        options.metadata,
        language(options.lang.as_deref())?,
    ) {
        (true, ..) => RelationKind::NextEdition,
        (_, true, _) => RelationKind::Metadata,
        (_, _, Some(language)) => RelationKind::Translation(language),
        _ => {
            return Err(usage(
                "say which relation: --next-edition, --translation or --metadata",
            ));
        }
    };
    match named.door.path_in_mount(&named.names) {
        None => named
            .door
            .change(|archive| archive.unrelate(&Process, &named.names, &kind))?,
        Some(path) => rustix::fs::removexattr(door::bytes(&path), attribute_name(&kind))
            .map_err(|error| refused_relation(&kind, &named, error))?,
    }
    if options.json {
        say(&print::relation_json(&named.names, &kind, None))?;
    }
    Ok(Exit::Done)
}

fn list(options: &List) -> Result<Exit, Failure> {
    let state = options
        .state
        .as_deref()
        .map(str::parse::<State>)
        .transpose()
        .map_err(usage)?;
    let archive = Door::at(&options.place)?.read()?;
    let mut items = Vec::new();
    archive.store().each_item(|item| {
        let names = [
            item.names.rep().map(|rep| rep.canonical()),
            item.names.ibip().map(|ibip| ibip.canonical()),
        ];
        let begins = |prefix: &String| {
            names.iter().flatten().any(|name| {
                name.get(..prefix.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            })
        };
        if state.is_none_or(|state| state == item.state)
            && options.prefix.as_ref().is_none_or(begins)
        {
            items.push(item.clone());
        }
        Ok(())
    })?;
    say(&if options.json {
        print::list_json(&items)
    } else {
        items.iter().map(print::list_line).collect()
    })?;
    Ok(Exit::Done)
}

fn reindex(options: &Reindex) -> Result<Exit, Failure> {
    let archive = start::open_for_reindex(&options.store)?;
    let progress = counting(&options.store);
    let (archive, report) = match archive.reindex(&mut |items| progress.at(items)) {
        // Damage deep in the database shows only when it is read through.
        Err(ArchiveError::Store(error)) if error.is_damage() => {
            drop(archive);
            let archive = start::open_anew(&options.store, &error)?;
            let report = archive.reindex(&mut |items| progress.at(items))?;
            (archive, report)
        }
        other => (archive, other?),
    };
    drop(progress);
    archive.close();
    if options.json {
        say(&print::report_json(&options.store, &report))?;
        return Ok(Exit::Done);
    }
    for finding in &report.findings {
        eprint!("ibifs: {}", print::finding_line(finding, false));
    }
    say(&told(format_args!("{} items indexed\n", report.items)))?;
    Ok(Exit::Done)
}

fn fsck(options: &Fsck) -> Result<Exit, Failure> {
    Archive::refuse_unfinished(&options.store)?;
    if options.clock_is_right {
        let archive = Archive::open(&options.store, Box::new(SystemClock))?;
        if let Some(last) = archive.go_on_from_present()? {
            let until = last.to_rfc3339();
            let goes_on = format!(
                "minting goes on from now; dates until {until} that items have are passed over"
            );
            eprintln!("ibifs: {}", told(goes_on));
        }
        archive.close();
    }
    let progress = counting(&options.store);
    let mut told = |items| progress.at(items);
    let mut report = if options.repair {
        Archive::repair(&options.store, Box::new(SystemClock), &mut told)?
    } else {
        Archive::check(&options.store, &SystemClock, &mut told)?
    };
    drop(progress);
    if let Some(other) = &options.with {
        let found = transfer::claimed_by_both(&options.store, other)?;
        report.findings.extend(found);
    }
    say(&if options.json {
        print::report_json(&options.store, &report)
    } else {
        print::report_text(&report, options.dry_run)
    })?;
    let left = report.findings.iter().any(Finding::is_left);
    Ok(if left { Exit::Failed } else { Exit::Done })
}

fn id(options: &Id) -> Result<Exit, Failure> {
    let parse = |text: &str| {
        Ibi::parse(text).map_err(|error| Failure::new(Exit::Failed, error.to_string()))
    };
    match &options.command {
        IdCommand::Check { ibi, json } => {
            let ibi = parse(ibi)?;
            if *json {
                say(&print::names_json(&Names::from(ibi)))?;
            }
        }
        IdCommand::Explain { ibi, json } => {
            let explanation = parse(ibi)?.explain();
            say(&match json {
                true => print::explanation_json(&explanation),
                false => print::explanation_text(&explanation),
            })?;
        }
    }
    Ok(Exit::Done)
}
