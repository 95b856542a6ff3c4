//! `ibifs quickstart`: a mounted store with a few related items, and commands to try.

use std::path::{Path, PathBuf};

use super::{print, start};
use crate::archive::tree::{METADATA_TEXT, Place};
use crate::archive::{Archive, Fact, Process, Relative, Setup, SystemClock, holder};
use crate::command::cli::{Mount, NetworkOptions, Output, Quickstart};
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::formats::item::Names;
use ibi::message;
use ibi::relation::Language;

const REPORT: &str = "Rainfall over the upper Paraíba valley, 1995-2025\n\nFirst edition.\n";
const SECOND: &str =
    "Rainfall over the upper Paraíba valley, 1995-2026\n\nSecond edition, with one year more.\n";
const PORTUGUESE: &str =
    "Chuva no alto vale do Paraíba, 1995-2026\n\nTradução da segunda edição.\n";
const RECORD: &str = "@techreport{rainfall,\n  author = {Souza, Ana and Lima, José},\n  title = {Rainfall over the upper Paraíba valley},\n  institution = {Example Institute},\n  year = {2026},\n  language = {en}\n}\n";
const TEXT: &str = "title: Chuva no alto vale do Paraíba\ncreator: Souza, Ana\ncreator: Lima, José\nlanguage: pt\n";

/// `ibifs quickstart`
pub(super) fn run(options: &Quickstart) -> Result<Exit, Failure> {
    let mount_point = &options.mount_point;
    let store = beside(mount_point);
    #[expect(clippy::disallowed_methods, reason = "the user named it")]
    std::fs::create_dir_all(mount_point).map_err(|error| failed(mount_point, error))?;
    if let Some(known) = holder(&store).and_then(|holder| holder.mount_point) {
        return Err(Failure::new(
            Exit::Busy,
            message!(
                "the demonstration is already mounted at '{mount_point}'; use it there, or end it with 'ibifs umount {mount_point}'",
                mount_point = known.display()
            ),
        ));
    }
    if !store.join("archive.ibi").exists() {
        fill(&store)?;
    }
    let mounted = start::mount_in_background(&Mount {
        store: store.clone(),
        mount_point: mount_point.clone(),
        options: Vec::new(),
        cache: None,
        cache_size: None,
        network: NetworkOptions::default(),
        foreground: false,
        output: Output::default(),
        ready_fd: None,
    })?;
    if mounted == Exit::Done {
        super::say(&if options.output.json {
            print::mount_json(&store, mount_point)
        } else {
            what_to_try(&store, mount_point)?
        })?;
    }
    Ok(mounted)
}

/// The store of a demonstration, beside its mount point.
fn beside(mount_point: &Path) -> PathBuf {
    let mut name = mount_point.file_name().unwrap_or_default().to_owned();
    name.push(".store");
    mount_point.with_file_name(name)
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    let path = path.display();
    Failure::new(Exit::Failed, message!("'{path}': {error}", path, error))
}

/// A report, its second edition, the Portuguese translation of that, and a metadata item.
fn fill(store: &Path) -> Result<(), Failure> {
    let setup = Setup {
        host: Some("demo.example.org".to_owned()),
        ..Setup::default()
    };
    let (archive, _) = Archive::init(store, &setup, Box::new(SystemClock), &mut |_| {})?;
    let put = |names: &Names, file: &str, text: &str| {
        let path = store.join(Place::of(names).as_str()).join(file);
        #[expect(
            clippy::disallowed_methods,
            reason = "the store is new, and closed to others"
        )]
        std::fs::write(&path, text).map_err(|error| failed(&path, error))
    };
    let report = archive.depositor(&Process).mint(None, None)?.names;
    put(&report, "doc/report.txt", REPORT)?;
    let english = Language::parse("en").ok();
    archive.edit(&Process, |it| it.set_fact(&report, Fact::Language(english)))?;
    archive.edit(&Process, |it| {
        it.set_fact(&report, Fact::Target(Some(b"report.txt".to_vec())))
    })?;
    let second = archive
        .depositor(&Process)
        .mint(Some(&Relative::Edition(report.clone())), None)?
        .names;
    put(&second, "doc/report.txt", SECOND)?;
    archive.edit(&Process, |it| it.set_fact(&second, Fact::Language(english)))?;
    if let Ok(portuguese) = Language::parse("pt") {
        let relative = Relative::Translation(second.clone(), portuguese);
        let translation = archive
            .depositor(&Process)
            .mint(Some(&relative), None)?
            .names;
        put(&translation, "doc/report.txt", PORTUGUESE)?;
        put(&translation, METADATA_TEXT, TEXT)?;
    }
    let metadata = archive
        .depositor(&Process)
        .mint(Some(&Relative::Metadata(second.clone())), None)?
        .names;
    put(&metadata, "doc/reference.bib", RECORD)?;
    archive.close();
    Ok(())
}

fn what_to_try(store: &Path, mount_point: &Path) -> Result<String, Failure> {
    let archive = Archive::open_read_only(store)?;
    let mut first = None;
    archive.store().each_item(|item| {
        if item.target.is_some() && first.is_none() {
            first = Some(item.names.clone());
        }
        Ok(())
    })?;
    let Some(names) = first else {
        let mounted = message!(
            "mounted at {mount_point}",
            mount_point = mount_point.display()
        );
        return Ok(format!("{}\n", localized(&mounted)));
    };
    let (store, shown) = (store.display(), mount_point.display());
    let rep = names.rep().map(ToString::to_string).unwrap_or_default();
    let ibip = names.ibip().map(ToString::to_string).unwrap_or_default();
    let is_mounted = localized(&message!(
        "The store {store} is mounted at {shown}. Try:",
        store,
        shown
    ));
    Ok(format!(
        "{is_mounted}\n\
         \n  ls {shown}/{rep}/doc\
         \n  cat {shown}/{ibip}/doc/report.txt\
         \n  readlink '{shown}/{ibip}!'\
         \n  cat '{shown}/{ibip}!/doc/report.txt'\
         \n  cat '{shown}/{ibip}!+(pt)/doc/report.txt'\
         \n  cat '{shown}/{ibip}!:(oai_dc)'\
         \n  mkdir {shown}/.mint/mine && readlink {shown}/.mint/.mine\
         \n  ibifs umount {shown}\n"
    ))
}
