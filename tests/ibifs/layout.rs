//! The map in `src/lib.rs` is true: who calls whom, and where each outside crate lives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The place of a source file on the map, `os/caller.rs` of `os/src/caller.rs`, and the root of its crate there.
fn place(below: &Path) -> (PathBuf, String) {
    let mut names = below.components();
    match (names.next(), names.next()) {
        (Some(package), Some(src)) if src.as_os_str() == "src" => {
            let package = Path::new(&package);
            let place = match names.as_path() {
                root if root == Path::new("lib.rs") => package.with_extension("rs"),
                module => package.join(module),
            };
            (place, format!("crate::{}::", package.display()))
        }
        _ => (below.to_owned(), "crate::".to_owned()),
    }
}

/// Every source file, as the module it belongs to and the lines that are neither comment nor test.
fn modules() -> Vec<(String, PathBuf, Vec<String>)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut waiting = vec![src.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory of sources") {
            let path = entry.expect("an entry").path();
            // The programs and tests beside a package's sources are no part of a module.
            let no_code = ["Cargo.toml", "tests.rs", "testing.rs"];
            let is_beside = ["examples", "tests"]
                .iter()
                .any(|name| path.ends_with(name));
            match path.is_dir() {
                true if is_beside => {}
                true => waiting.push(path),
                false if no_code.iter().any(|name| path.ends_with(name)) => {}
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let (below, root) = place(path.strip_prefix(&src).expect("below src"));
            let names: Vec<_> = below
                .components()
                .map(|name| name.as_os_str().to_string_lossy().into_owned())
                .collect();
            let module = match names.as_slice() {
                [folder, module, ..] if folder != "ibi" => format!("{folder}::{module}"),
                [name, ..] => name.clone(),
                [] => String::new(),
            };
            let module = module.trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).expect("a readable source");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(|line| line.replace("crate::", &root))
                .collect();
            (module, below, lines)
        })
        .collect()
}

/// The names that the lists of a module's documentation link to, in their order.
fn listed(module: &str) -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let package = src.join(module).join("src/lib.rs");
    let file = if package.exists() {
        package
    } else {
        src.join(module).with_extension("rs")
    };
    let text = std::fs::read_to_string(file).expect("a source");
    text.lines()
        .filter_map(|line| line.strip_prefix("//! - "))
        .flat_map(|line| {
            let names = line.split(": ").next().unwrap_or_default();
            names
                .split(", ")
                .filter_map(|name| name.strip_prefix("[`")?.strip_suffix("`]"))
                .map(|name| name.strip_prefix("mod@").unwrap_or(name).to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The modules in the order of the map: folder by folder, and in each folder as its file lists them.
fn order() -> Vec<String> {
    listed("lib")
        .into_iter()
        .flat_map(|folder| match folder.as_str() {
            "ibi" => vec![folder],
            _ => listed(&folder)
                .into_iter()
                .map(|module| format!("{folder}::{module}"))
                .collect(),
        })
        .collect()
}

/// The modules of the crate that a line of code names by a path from its root.
fn called(line: &str) -> Vec<String> {
    let names = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    // A visibility names who may use it, not what it uses.
    line.trim_start()
        .trim_start_matches("pub(in crate::")
        .split("crate::")
        .skip(1)
        .map(|rest| {
            let folder = names(rest);
            let module = names(rest[folder.len()..].trim_start_matches("::"));
            format!("{folder}::{module}")
        })
        .collect()
}

/// Every module is on the map, and uses modules above it on the map, never one below.
#[test]
fn modules_use_modules_above_them_only() {
    let order = order();
    let position: BTreeMap<&str, usize> = order
        .iter()
        .enumerate()
        .map(|(at, module)| (module.as_str(), at))
        .collect();
    let operations = position["archive::operations"];
    let mut strays = Vec::new();
    for (module, file, lines) in modules() {
        if ["lib", "main", "ibi"].contains(&module.as_str()) || file.components().count() == 1 {
            continue;
        }
        let Some(own) = position.get(module.as_str()) else {
            strays.push(format!("{module} is not on the map"));
            continue;
        };
        for line in &lines {
            for name in called(line) {
                // The exports of `archive` from its operations are named without their module.
                let of_operations = name.starts_with("archive::").then_some(&operations);
                match position.get(name.as_str()).or(of_operations) {
                    Some(at) if at <= own => {}
                    _ => strays.push(format!("{}: {}", file.display(), line.trim())),
                }
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// The paths of a `use` tree, or of a path in code, at the start of a text; and what follows it.
fn tree(text: &str) -> (Vec<Vec<String>>, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    if let Some(group) = rest.strip_prefix('{') {
        let mut paths = Vec::new();
        rest = group.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            let (more, after) = tree(rest);
            paths.extend(more);
            let next = after.find([',', '}']).unwrap_or(after.len());
            rest = after[next..].trim_start_matches(',').trim_start();
        }
        return (paths, rest.strip_prefix('}').unwrap_or(rest));
    }
    match rest.strip_prefix("::") {
        Some(below) if !name.is_empty() => {
            let (mut paths, rest) = tree(below);
            for path in &mut paths {
                path.insert(0, name.to_owned());
            }
            (paths, rest)
        }
        _ if name.is_empty() => (vec![Vec::new()], rest),
        _ => (vec![vec![name.to_owned()]], rest),
    }
}

/// The paths of a code that begin with one of these words.
fn paths_from(code: &str, words: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for word in words {
        for (at, _) in code.match_indices(word) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_ascii_alphanumeric() && !"_:".contains(c)) {
                let start = if *word == "use " { at + 4 } else { at };
                found.extend(tree(&code[start..]).0);
            }
        }
    }
    found
}

/// The modules of this package by their paths, `archive`, `tree`, `small`, each with its code.
fn codes() -> BTreeMap<Vec<String>, String> {
    modules()
        .into_iter()
        .filter(|(module, file, _)| module != "ibi" && !file.ends_with("testing.rs"))
        .map(|(_, file, lines)| {
            let file = file.with_extension("");
            let names = file.components();
            let names = names.map(|name| name.as_os_str().to_string_lossy().into_owned());
            (names.collect(), lines.join("\n"))
        })
        .collect()
}

/// The uses among the modules of one folder.
#[derive(Default)]
struct Folder {
    /// A module, and another one of the folder that it uses.
    uses: BTreeSet<(String, String)>,
    /// A module, and what it uses that the file of the folder defines itself.
    of_the_folder: BTreeSet<(String, String)>,
}

/// The folders of this package, by their paths.
fn folders() -> BTreeMap<Vec<String>, Folder> {
    let codes = codes();
    let is_module = |folder: &[String], name: &String| {
        codes.contains_key(&[folder, std::slice::from_ref(name)].concat())
    };
    // The names that the file of a folder imports from its modules are available to all of them.
    let named_by = |folder: &[String], name: &String| -> Option<String> {
        let code = codes.get(folder)?;
        let paths = paths_from(code, &["use "]);
        let named = paths.into_iter().find(|path| {
            path.len() > 1 && path.last() == Some(name) && is_module(folder, &path[0])
        });
        named.map(|path| path[0].clone())
    };
    let mut folders: BTreeMap<Vec<String>, Folder> = BTreeMap::new();
    for (module, code) in &codes {
        for path in paths_from(code, &["crate::", "super::", "self::"]) {
            let above = path.iter().take_while(|name| *name == "super").count();
            let below = path.iter().skip_while(|name| *name == "super").cloned();
            let path: Vec<String> = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("self") => [module, &path[1..]].concat(),
                _ if above > module.len() => continue,
                _ => {
                    let base = module[..module.len() - above].iter().cloned();
                    base.chain(below).collect()
                }
            };
            let shared = module.iter().zip(&path);
            let shared = shared.take_while(|(one, other)| one == other).count();
            let (Some(user), Some(used)) = (module.get(shared), path.get(shared)) else {
                continue;
            };
            let at = &module[..shared];
            let used = if is_module(at, used) {
                Some(used.clone())
            } else {
                named_by(at, used)
            };
            let folder = folders.entry(at.to_vec()).or_default();
            match used {
                Some(used) if used != *user => {
                    folder.uses.insert((user.clone(), used));
                }
                Some(_) => {}
                None => {
                    let name = path[shared].clone();
                    folder.of_the_folder.insert((user.clone(), name));
                }
            }
        }
    }
    folders
}

/// In no folder do modules use each other in a circle.
#[test]
fn modules_of_a_folder_use_each_other_in_one_direction() {
    let mut circles = Vec::new();
    let folders = folders();
    assert!(folders.len() > 20, "{} folders", folders.len());
    for (path, folder) in folders {
        let mut left = folder.uses;
        loop {
            let users: BTreeSet<_> = left.iter().map(|(user, _)| user.clone()).collect();
            let used: BTreeSet<_> = left.iter().map(|(_, used)| used.clone()).collect();
            let before = left.len();
            left.retain(|(one, other)| users.contains(other) && used.contains(one));
            if left.len() == before {
                break;
            }
        }
        circles.extend(left.into_iter().map(|it| (path.join("::"), it)));
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

/// These folders are lists of modules, each of which uses only those above it: the file of the folder adds
/// nothing that they use.
#[test]
fn modules_of_a_folder_use_those_listed_above_them() {
    let folders = folders();
    let mut uses = 0;
    for name in [
        "archive::backup",
        "archive::log_files",
        "archive::operations::check",
        "archive::operations::sidecars",
        "archive::package",
        "archive::scrub",
        "archive::transfer",
        "archive::tree",
        "world::copy",
        "world::mount",
        "world::remote",
    ] {
        let order = listed(&name.replace("::", "/"));
        let position = |module: &String| order.iter().position(|it| it == module);
        let path: Vec<_> = name.split("::").map(str::to_owned).collect();
        let folder = &folders[&path];
        assert!(!folder.uses.is_empty(), "{name}");
        uses += folder.uses.len();
        for (user, used) in &folder.uses {
            let (Some(at), Some(of)) = (position(user), position(used)) else {
                panic!("{name}: {user} or {used} is not listed");
            };
            assert!(of < at, "{name}: {user} uses {used}, which is below it");
        }
        let strays = &folder.of_the_folder;
        assert!(strays.is_empty(), "{name}: {strays:?}");
    }
    assert!(uses > 40, "{uses} uses");
}

/// Whether a module is the one that is named, or in the folder that is named.
fn is_in(module: &str, name: &str) -> bool {
    module == name || module.split("::").next() == Some(name)
}

/// Each outside crate that more than one folder could name has its home.
#[test]
fn outside_crates_stay_at_home() {
    let homes: &[(&str, &[&str])] = &[
        ("fuser", &["fuse::fs", "fuse::mount", "world::mount"]),
        ("rusqlite", &["sql", "resolver", "archive::store"]),
        (
            "chrono",
            &["ibi", "archive::operations", "archive::package"],
        ),
        ("serde", &["ibi", "archive::package"]),
        (
            "quick_xml",
            &[
                "formats::metadata",
                "formats::description",
                "formats::oai",
                "formats::registration",
                "formats::webdav",
                "formats::premis",
                "formats::file_text",
            ],
        ),
        (
            "unicode_normalization",
            &[
                "formats::metadata",
                "formats::description",
                "formats::pdf_text",
                "archive::package",
            ],
        ),
        ("polib", &["command::language"]),
        ("quick_cache", &["resolver", "web", "world::remote"]),
        ("maud", &["http", "resolver", "web"]),
        ("clap", &["command::cli", "main"]),
        ("indicatif", &["command::progress"]),
        ("csv", &["formats::table", "web"]),
        ("pulldown_cmark", &["web"]),
        ("tar", &["archive::package"]),
        ("flate2", &["archive::package", "archive::store"]),
        ("sha1", &["archive::package"]),
        ("md5", &["archive::package"]),
        ("blake2", &["archive::package"]),
        ("bzip2", &["archive::package"]),
        ("lzma_rust2", &["archive::package"]),
        (
            "sha2",
            &[
                "archive::operations",
                "archive::manifest",
                "archive::scrub",
                "archive::log_files",
                "archive::piece_hasher",
                "web::harvest",
                "archive::package",
                "archive::transfer",
                "web",
                "world",
            ],
        ),
        (
            "serde_json",
            &[
                "formats::metadata",
                "formats::description",
                "formats::citation",
                "formats::history",
                "formats::premis",
                "formats::pronom",
                "command::commands",
                "command::json",
                "http",
                "resolver",
                "web",
                "archive::package",
            ],
        ),
        ("env_logger", &["command::logging"]),
        ("sd_notify", &["command::commands"]),
        ("axum", &["http", "resolver", "web"]),
        ("bytes", &["http", "web", "world::copy", "world::remote"]),
        ("http_body_util", &["http", "web"]),
        ("httpdate", &["http", "web"]),
        ("hyper", &["http", "web", "world::remote"]),
        ("mime_guess", &["formats::premis", "http", "web"]),
        ("rawzip", &["web"]),
        ("tokio", &["sql", "http", "web", "resolver", "world"]),
        (
            "base64",
            &[
                "formats::federation",
                "formats::tlog",
                "web",
                "world::remote",
            ],
        ),
        (
            "libc",
            &[
                "os",
                "sql",
                "fuse::descriptors",
                "fuse::inside",
                "fuse::fs",
                "fuse::mount",
            ],
        ),
    ];
    let mut strays = Vec::new();
    for (module, file, lines) in modules() {
        for (name, at_home) in homes {
            if at_home.iter().any(|home| is_in(&module, home)) {
                continue;
            }
            for line in &lines {
                let is_named = line.match_indices(&format!("{name}::")).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
                });
                if is_named {
                    strays.push(format!("{name} in {}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// Threads that a request starts are not bound to the processor of its worker: they are started by
/// `processors::spawn_unbound`, but for those that start with the mount, and no worker starts a program.
#[test]
fn what_a_request_starts_is_not_bound() {
    let of_the_start = [
        "fuse/mount.rs",
        "fuse/descriptors.rs",
        "fuse/fs/invalidator.rs",
        "fuse/fs/leases.rs",
        "fuse/fs/repeater.rs",
        "fuse/fs/surplus.rs",
        "fuse/mount/socket.rs",
        "fuse/fs/scheduler/worker_pool.rs",
        "archive/operations/check/scan.rs",
        "archive/store/harvest.rs",
        // Only a thread of another runtime, as the web service has them, starts one.
        "sql/engine/postgres.rs",
        // Only commands copy from store to store.
        "archive/transfer/batch.rs",
        // Only a command that scrubs has formats identified.
        "archive/scrub/formats.rs",
    ];
    let mut strays = Vec::new();
    for (module, file, lines) in modules() {
        let is_concerned = ["fuse::", "archive::", "sql::"]
            .iter()
            .any(|it| module.starts_with(it));
        if !is_concerned || of_the_start.iter().any(|it| file == Path::new(it)) {
            continue;
        }
        for line in &lines {
            if [
                "thread::Builder",
                "thread::spawn",
                "thread::scope",
                "Command::new",
            ]
            .iter()
            .any(|start| line.contains(start))
            {
                strays.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// The pure modules make no system call, read no clock, and do not even log.
#[test]
fn pure_modules_are_pure() {
    let pure = ["ibi", "formats"];
    let foreign = [
        "std::fs",
        "std::net::Tcp",
        "std::process",
        "rustix",
        "log::",
        "Utc::now",
        "SystemTime",
    ];
    for (module, file, lines) in modules() {
        if pure.iter().any(|it| is_in(&module, it)) {
            for line in &lines {
                let is_named = |name: &&&str| {
                    let mut found = line.match_indices(**name);
                    found.any(|(at, _)| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
                };
                let stray = foreign.iter().find(is_named);
                assert!(stray.is_none(), "{}: {}", file.display(), line.trim());
            }
        }
    }
}
