//! The password for a server: `PGPASSWORD`, or a line of `~/.pgpass`, as libpq finds them; and whether the user has
//! named that server beside it.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use ibi::message;
use ibi::message::{Localize, Message};
use ibifs_os::opening;
use rustix::fs::OFlags;

/// A password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Password {
    pub(super) text: String,
    /// Whether it was found with the host and the port of each server, and not with `*`: it is for these.
    pub(super) is_for_these: bool,
}

/// The hosts and ports of a configuration.
fn servers(config: &Config) -> Vec<(&str, String)> {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let servers = hosts.map(|(at, host)| match host {
        Host::Tcp(host) => (host.as_str(), port(at).to_string()),
        Host::Unix(_) => ("localhost", port(at).to_string()),
    });
    servers.collect()
}

/// The password for what a configuration connects to, if there is any. Several servers must have the same.
pub(super) fn find(config: &Config) -> Result<Option<Password>, Message> {
    let servers = servers(config);
    let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    if let Some(text) = variable("PGPASSWORD") {
        let host = variable("PGHOST");
        let port = variable("PGPORT").unwrap_or_else(|| "5432".to_owned());
        let mut others = servers.iter();
        let is_for_these =
            others.all(|server| Some(server.0) == host.as_deref() && server.1 == port);
        return Ok(Some(Password { text, is_for_these }));
    }
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let file = named.or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".pgpass"))
    });
    let Some(file) = file else { return Ok(None) };
    let Ok(mut opened) = opening::regular(&file, OFlags::empty()) else {
        return Ok(None);
    };
    let others = opened
        .metadata()
        .map_or(0o077, |found| found.mode() & 0o077);
    if others != 0 {
        return Err(message!(
            "others may read the passwords in '{path}'; run 'chmod 600' on it",
            path = file.display()
        ));
    }
    let mut text = String::new();
    opened.read_to_string(&mut text).map_err(|error| {
        let error = error.message();
        message!("{path}: {error}", path = file.display(), error)
    })?;
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let mut found = servers
        .iter()
        .map(|(host, port)| in_file(&text, [host, port, database, user]));
    let Some(Some(mut password)) = found.next() else {
        return Ok(None);
    };
    for other in found {
        match other {
            Some(other) if other.text == password.text => {
                password.is_for_these &= other.is_for_these;
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(password))
}

/// The password of the first line whose fields match.
fn in_file(text: &str, wanted: [&str; 4]) -> Option<Password> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(|line| {
            let fields = fields(line);
            let (password, place) = fields.split_last()?;
            let is_ours = place.len() == wanted.len()
                && place
                    .iter()
                    .zip(wanted)
                    .all(|(field, wanted)| field == "*" || field == wanted);
            is_ours.then(|| Password {
                text: password.clone(),
                is_for_these: place[..2] == wanted[..2],
            })
        })
}

/// The fields of a line, which colons separate; a backslash precedes a colon or backslash in a field.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            '\\' => field.extend(rest.next()),
            next => field.push(next),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_counts() {
        let text = "# h:5432:d:u:no\nh:5432:other:u:no\nh:*:d:u:se\\:cr\\\\et\nn:5432:*:*:own\n*:*:*:*:any\n";
        let found = |host: &str| {
            let found = in_file(text, [host, "5432", "d", "u"])?;
            Some((found.text, found.is_for_these))
        };
        assert_eq!(found("h"), Some(("se:cr\\et".to_owned(), false)));
        assert_eq!(found("n"), Some(("own".to_owned(), true)));
        assert_eq!(found("other"), Some(("any".to_owned(), false)));
        assert_eq!(in_file("h:1:d:u\n", ["h", "1", "d", "u"]), None);
    }
}
