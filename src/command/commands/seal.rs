//! `ibifs seal` and `ibifs unseal`: the daemon of a mounted store does it for the owner of the item, or the command itself.

use serde_json::Value;

use super::access::{self, Named};
use super::{daemon, print, say, usage};
use crate::archive::Process;
use crate::command::cli::{Seal, Unseal};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::fixity::Digest;
use crate::formats::item::{self, period_text};
use crate::formats::question::Line;
use ibi::{Timestamp, message};

pub(super) fn seal(options: &Seal) -> Result<Exit, Failure> {
    let named = access::find(&options.item, options.store.as_deref())?;
    let seal = seal_of(&named, options.after)?;
    let date = seal.at.to_rfc3339();
    let text = match &seal.digest {
        Some(digest) => format!("{date} {digest}\n"),
        None => format!("{date}\n"),
    };
    said(&named, options.output.json, &text, print::seal_json(&seal))
}

/// Seals an item, now or after so many seconds.
pub(super) fn seal_of(named: &Named, after: Option<i64>) -> Result<item::Seal, Failure> {
    match named.access.mounted() {
        None => named
            .access
            .change(|archive| archive.seal(&named.names, after, &Process)),
        Some(mounted) => {
            let mut sealed = None;
            let question = Line::new("seal").with_names("item", &named.names);
            let question = question.with_all("after", after.map(period_text));
            daemon::each_line(&mounted, &question, |line| {
                if let Some(seal) = sealed_in(line) {
                    sealed = Some(seal);
                }
            })?;
            sealed.ok_or_else(|| {
                Failure::new(
                    Exit::Failed,
                    message!("the daemon has not said what it sealed"),
                )
            })
        }
    }
}

pub(super) fn unseal(options: &Unseal) -> Result<Exit, Failure> {
    if options.reason.trim().is_empty() {
        return Err(usage(message!("--reason needs a text")));
    }
    let named = access::find(&options.item, options.store.as_deref())?;
    match named.access.mounted() {
        None => named
            .access
            .change(|archive| archive.unseal(&named.names, &options.reason, &Process))?,
        Some(mounted) => {
            let question = Line::new("unseal").with_names("item", &named.names);
            let question = question.with("reason", &options.reason);
            daemon::each_line(&mounted, &question, |_| ())?;
        }
    }
    said(&named, options.output.json, "", Value::Null)
}

/// The seal in a line of the daemon.
fn sealed_in(line: &Line) -> Option<item::Seal> {
    Some(item::Seal {
        at: Timestamp::parse_rfc3339(line.get("at")?).ok()?,
        digest: match line.get("digest") {
            Some(text) => Some(Digest::parse(text.as_bytes())?),
            None => None,
        },
    })
}

fn said(named: &Named, is_json: bool, text: &str, sealed: Value) -> Result<Exit, Failure> {
    say(&if is_json {
        let mut object = json::names(&named.names);
        object.insert("sealed".into(), sealed);
        json::pretty(&Value::Object(object))
    } else {
        text.to_owned()
    })?;
    Ok(Exit::Done)
}
