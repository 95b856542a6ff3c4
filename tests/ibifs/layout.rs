//! The map in `src/lib.rs` is true: who calls whom, and where each outside crate lives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every source file, as the module it belongs to and the lines that are neither comment nor test.
fn modules() -> Vec<(String, PathBuf, Vec<String>)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut waiting = vec![src.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory of sources") {
            let path = entry.expect("an entry").path();
            // The programs and tests beside a package's sources are no part of a module.
            let is_beside = ["examples", "tests"]
                .iter()
                .any(|name| path.ends_with(name));
            match path.is_dir() {
                true if is_beside => {}
                true => waiting.push(path),
                false if path.ends_with("tests.rs") || path.ends_with("testing.rs") => {}
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let below = path.strip_prefix(&src).expect("below src").to_owned();
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
                .map(str::to_owned)
                .collect();
            (module, below, lines)
        })
        .collect()
}

/// The names that the lists of a module's documentation link to, in their order.
fn listed(file: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(file).expect("a source");
    text.lines()
        .filter_map(|line| line.strip_prefix("//! - "))
        .flat_map(|line| {
            let names = line.split(": ").next().unwrap_or_default();
            names
                .split(", ")
                .filter_map(|name| Some(name.strip_prefix("[`")?.strip_suffix("`]")?.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The modules in the order of the map: folder by folder, and in each folder as its file lists them.
fn order() -> Vec<String> {
    listed("src/lib.rs")
        .into_iter()
        .flat_map(|folder| match folder.as_str() {
            "ibi" => vec![folder],
            _ => listed(&format!("src/{folder}.rs"))
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
    line.split("crate::")
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
                // What `archive` exports of its operations is named without their module.
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

/// Whether a module is the one that is named, or in the folder that is named.
fn is_in(module: &str, name: &str) -> bool {
    module == name || module.split("::").next() == Some(name)
}

/// Each outside crate has its home.
#[test]
fn outside_crates_stay_at_home() {
    let homes: &[(&str, &[&str])] = &[
        ("argon2", &["web::registry"]),
        ("fuser", &["fuse::fs", "fuse::mount"]),
        (
            "rusqlite",
            &["archive::database", "web::registry", "archive::store"],
        ),
        ("chrono", &["ibi", "archive::operations"]),
        (
            "quick_xml",
            &["formats::metadata", "formats::oai", "formats::registration"],
        ),
        (
            "unicode_normalization",
            &["formats::metadata", "archive::package"],
        ),
        ("polib", &["command::language"]),
        ("quick_cache", &["web::server"]),
        ("maud", &["web::server"]),
        ("clap", &["command::cli", "main"]),
        ("indicatif", &["command::progress"]),
        ("csv", &["formats::table"]),
        (
            "sha2",
            &[
                "archive::scrub",
                "web::harvest",
                "archive::package",
                "archive::transfer",
            ],
        ),
        (
            "serde_json",
            &[
                "command::commands",
                "command::json",
                "web::server",
                "archive::package",
            ],
        ),
        ("env_logger", &["command::logging"]),
        ("sd_notify", &["command::commands"]),
        ("axum", &["web::client", "web::server"]),
        ("bytes", &["web::client", "web::server"]),
        ("http_body_util", &["web::client", "web::server"]),
        ("httpdate", &["web::client", "web::server"]),
        ("hyper", &["web::client", "web::server"]),
        ("hyper_util", &["web::client", "web::server"]),
        ("mime_guess", &["web::client", "web::server"]),
        ("percent_encoding", &["formats::query"]),
        ("tokio", &["web::client", "web::server"]),
        ("tower", &["web::client", "web::server"]),
        (
            "libc",
            &[
                "os::caller",
                "archive::database",
                "fuse::descriptors",
                "fuse::inside",
                "fuse::fs",
                "fuse::mount",
                "os::charging",
                "os::credentials",
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
                if line.contains(&format!("{name}::")) {
                    strays.push(format!("{name} in {}: {}", file.display(), line.trim()));
                }
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
                let stray = foreign.iter().find(|name| line.contains(**name));
                assert!(stray.is_none(), "{}: {}", file.display(), line.trim());
            }
        }
    }
}
