//! The map in `src/lib.rs` is true: who calls whom, and where each outside crate lives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every source file, as the room it belongs to and the lines that are neither comment nor test.
fn rooms() -> Vec<(String, PathBuf, Vec<String>)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut waiting = vec![src.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory of sources") {
            let path = entry.expect("an entry").path();
            // The programs and tests beside a package's sources are no part of a room.
            let is_beside = ["examples", "tests"]
                .iter()
                .any(|name| path.ends_with(name));
            match path.is_dir() {
                true if is_beside => {}
                true => waiting.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let below = path.strip_prefix(&src).expect("below src").to_owned();
            let first = below.components().next().expect("a name").as_os_str();
            let room = first.to_string_lossy().trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).expect("a readable source");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(str::to_owned)
                .collect();
            (room, below, lines)
        })
        .collect()
}

/// The rooms in the order of the map.
fn order() -> Vec<String> {
    let map = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"))
        .expect("the map");
    map.lines()
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

/// Every module is on the map, and a room calls rooms above it on the map, never below.
#[test]
fn rooms_call_inward_only() {
    let order = order();
    let position: BTreeMap<&str, usize> = order
        .iter()
        .enumerate()
        .map(|(at, room)| (room.as_str(), at))
        .collect();
    let mut strays = Vec::new();
    for (room, file, lines) in rooms() {
        if room == "lib" || room == "main" {
            continue;
        }
        let Some(own) = position.get(room.as_str()) else {
            strays.push(format!("{room} is not on the map"));
            continue;
        };
        for line in &lines {
            for called in line.split("crate::").skip(1) {
                let name: String = called
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                if position.get(name.as_str()).is_some_and(|at| at > own) {
                    strays.push(format!("{}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// Each outside crate has its home.
#[test]
fn outside_crates_stay_at_home() {
    let homes: &[(&str, &[&str])] = &[
        ("argon2", &["registry"]),
        ("fuser", &["fs", "mount"]),
        ("rusqlite", &["database", "registry", "store"]),
        ("chrono", &["ibi", "archive"]),
        ("quick_xml", &["metadata", "oai", "registration"]),
        ("unicode_normalization", &["metadata", "package"]),
        ("polib", &["language"]),
        ("clap", &["cli", "main"]),
        ("indicatif", &["progress"]),
        ("csv", &["table"]),
        ("sha2", &["scrub", "harvest", "package", "transfer"]),
        ("serde_json", &["commands", "http", "package"]),
        ("env_logger", &["logging"]),
        ("sd_notify", &["commands"]),
        ("axum", &["http"]),
        ("bytes", &["http"]),
        ("http_body_util", &["http"]),
        ("httpdate", &["http"]),
        ("hyper", &["http"]),
        ("hyper_util", &["http"]),
        ("mime_guess", &["http"]),
        ("percent_encoding", &["query"]),
        ("tokio", &["http"]),
        ("tower", &["http"]),
        (
            "libc",
            &[
                "caller",
                "database",
                "descriptors",
                "inside",
                "fs",
                "mount",
                "payer",
                "credentials",
            ],
        ),
    ];
    let mut strays = Vec::new();
    for (room, file, lines) in rooms() {
        for (name, at_home) in homes {
            if at_home.contains(&room.as_str()) {
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

/// The pure rooms make no system call, read no clock, and do not even log.
#[test]
fn pure_rooms_are_pure() {
    let pure = [
        "ibi",
        "item",
        "links",
        "fixity",
        "metadata",
        "table",
        "mtree",
        "oai",
        "registration",
    ];
    let foreign = [
        "std::fs",
        "std::net::Tcp",
        "std::process",
        "rustix",
        "log::",
        "Utc::now",
        "SystemTime",
    ];
    for (room, file, lines) in rooms() {
        if pure.contains(&room.as_str()) {
            for line in &lines {
                let stray = foreign.iter().find(|name| line.contains(**name));
                assert!(stray.is_none(), "{}: {}", file.display(), line.trim());
            }
        }
    }
}
