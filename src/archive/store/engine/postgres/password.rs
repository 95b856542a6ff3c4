//! The password for a server: `PGPASSWORD`, or a line of `~/.pgpass`, as libpq finds them.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use ibi::message;
use ibi::message::{Localize, Message};

/// The password for what a configuration connects to, if there is any.
pub(super) fn find(config: &Config) -> Result<Option<String>, Message> {
    if let Some(password) = std::env::var("PGPASSWORD")
        .ok()
        .filter(|text| !text.is_empty())
    {
        return Ok(Some(password));
    }
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let file = named.or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(PathBuf::from(home).join(".pgpass"))
    });
    let Some(file) = file else { return Ok(None) };
    let Ok(found) = std::fs::metadata(&file) else {
        return Ok(None);
    };
    if found.mode() & 0o077 != 0 {
        return Err(message!(
            "others may read the passwords in '{path}'; run 'chmod 600' on it",
            path = file.display()
        ));
    }
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let error = error.message();
        message!("{path}: {error}", path = file.display(), error)
    })?;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.as_str(),
        _ => "localhost",
    };
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    Ok(in_file(&text, [host, &port, database, user]))
}

/// The password of the first line whose fields match.
fn in_file(text: &str, wanted: [&str; 4]) -> Option<String> {
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
            is_ours.then(|| password.clone())
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
        let text = "# h:5432:d:u:no\nh:5432:other:u:no\nh:*:d:u:se\\:cr\\\\et\n*:*:*:*:any\n";
        let found = |host: &str| in_file(text, [host, "5432", "d", "u"]);
        assert_eq!(found("h").as_deref(), Some("se:cr\\et"));
        assert_eq!(found("other").as_deref(), Some("any"));
        assert_eq!(in_file("h:1:d:u\n", ["h", "1", "d", "u"]), None);
    }
}
