//! The output of the commands, for people and as JSON.

use std::path::Path;

use serde_json::{Value, json};

use super::daemon::ListedItem;
use super::listen;

use crate::archive::store::Item;
use crate::archive::{
    CheckFinding, CheckReport, Claims, Clock, Facts, GoneRelation, Relations, Severity, SystemClock,
};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::fixity::{Found, Marks, shown};
use crate::formats::item::{Names, Seal, State};
use crate::http::server::MetricsSocket;
use crate::resolver::registry::{ListedActor, ListedDocument, RegisteredArchive};
use ibi::message::Localize;
use ibi::relation::RelationKind;
use ibi::{Ibi, message, plural};

/// One name per line: rep, then IBIp.
pub(super) fn names_text(names: &Names) -> String {
    let rep = names.rep().map(ToString::to_string);
    let ibip = names.ibip().map(ToString::to_string);
    [rep, ibip]
        .into_iter()
        .flatten()
        .map(|name| format!("{name}\n"))
        .collect()
}

pub(super) fn mount_json(store: &Path, mount_point: &Path) -> String {
    json::pretty(&json!({
        "store": json::path(store),
        "mount_point": json::path(mount_point),
    }))
}

/// A mount of items of other Archives: whom it asks first, and where it is.
pub(super) fn world_json(source: &str, mount_point: &Path) -> String {
    json::pretty(&json!({
        "source": source,
        "mount_point": json::path(mount_point),
    }))
}

/// The address of a service, and the URL of its listening socket.
pub(super) fn listening_json(address: &str, url: &str, metrics: Option<&MetricsSocket>) -> String {
    let mut object = json!({"address": address, "url": url});
    if let Some(metrics) = listen::metrics_url(metrics) {
        object["metrics"] = json!(metrics);
    }
    json::line(&object)
}

/// An item, its relation that was declared or removed, the current target, and the one before if it was another.
pub(super) fn relation_json(
    names: &Names,
    kind: &RelationKind,
    target: Option<&Names>,
    previous: Option<&Names>,
) -> String {
    let mut object = json::names(names);
    object.insert("relation".into(), json!(json::relation(kind)));
    object.insert("target".into(), json!(target.map(json::names)));
    object.insert("previous".into(), json!(previous.map(json::names)));
    json::pretty(&Value::Object(object))
}

pub(super) fn facts_json(store: &Path, facts: &Facts) -> String {
    json::pretty(&json!({
        "store": json::path(store),
        "host": facts.host,
        "port": facts.port,
        "ip": facts.ip.to_string(),
        "ip_port": facts.ip_port,
        "granularity": facts.granularity.to_string(),
        "archiveservice": json::names(&facts.service),
    }))
}

/// One Archive per line: its service, and its address and time of inclusion.
pub(super) fn registered_text(archives: &[RegisteredArchive]) -> String {
    let line = |archive: &RegisteredArchive| {
        let place = match &archive.included {
            Some(included) => message!(
                "{address} since {since}, {email}",
                address = included.url.short(),
                since = included.since.to_rfc3339(),
                email = included.email
            ),
            None => message!("excluded"),
        };
        let place = localized(&place);
        format!("{}  {place}\n", archive.service.preferred())
    };
    archives.iter().map(line).collect()
}

pub(super) fn registered_json(archives: &[RegisteredArchive]) -> String {
    let value = |archive: &RegisteredArchive| {
        let mut object = json::names(&archive.service);
        let included = archive.included.as_ref();
        object.insert(
            "registered".into(),
            json!(archive.registered_at.to_rfc3339()),
        );
        object.insert("address".into(), json!(included.map(|it| it.url.short())));
        object.insert("email".into(), json!(included.map(|it| &it.email)));
        object.insert(
            "included".into(),
            json!(included.map(|it| it.since.to_rfc3339())),
        );
        Value::Object(object)
    };
    json::pretty(&archives.iter().map(value).collect())
}

pub(super) fn actors_text(actors: &[ListedActor]) -> String {
    let line = |actor: &ListedActor| {
        let when = match (&actor.confirmed_at, &actor.dead_since) {
            (None, _) => message!("no document since {since}", since = actor.registered_at),
            (Some(_), Some(since)) => message!("no URL works since {since}", since),
            (Some(at), None) => message!("last document {at}", at),
        };
        let when = localized(&when);
        let client = actor.client.as_deref().unwrap_or("-");
        format!(
            "{}  {}  {}  {client}  {when}\n",
            actor.id, actor.documents, actor.email
        )
    };
    actors.iter().map(line).collect()
}

pub(super) fn actors_json(actors: &[ListedActor]) -> String {
    let value = |actor: &ListedActor| {
        json!({
            "id": actor.id,
            "host": actor.host,
            "port": actor.port,
            "email": actor.email,
            "client": actor.client,
            "registered": actor.registered_at,
            "confirmed": actor.confirmed_at,
            "dead_since": actor.dead_since,
            "documents": actor.documents,
        })
    };
    json::pretty(&actors.iter().map(value).collect())
}

pub(super) fn documents_text(documents: &[ListedDocument]) -> String {
    let line = |document: &ListedDocument| {
        let url = document.url.as_deref().unwrap_or("-");
        let of_archive = if document.is_of_archive {
            format!("  {}", localized(&message!("of an Archive: leads nowhere")))
        } else {
            String::new()
        };
        let actors = document.actors.join(" ");
        format!("{}  {url}  {actors}{of_archive}\n", document.id)
    };
    documents.iter().map(line).collect()
}

pub(super) fn documents_json(documents: &[ListedDocument]) -> String {
    let value = |document: &ListedDocument| {
        json!({
            "id": document.id,
            "url": document.url,
            "actors": document.actors,
            "of_archive": document.is_of_archive,
        })
    };
    json::pretty(&documents.iter().map(value).collect())
}

pub(super) fn removed_json(what: &str, removed: &[Ibi]) -> String {
    let value = |id: &Ibi| json!({ what: id.to_string() });
    json::pretty(&removed.iter().map(value).collect())
}

/// The facts that are printed of one item.
pub(super) struct ItemDetails<'a> {
    pub(super) item: &'a Item,
    /// Whether only its owner and group may enter it.
    pub(super) draft: bool,
    pub(super) title: Option<&'a str>,
    /// Its persistent URL.
    pub(super) link: &'a str,
    pub(super) relations: &'a Relations,
    /// Those to items that were removed here or are withdrawn.
    pub(super) removed: &'a [GoneRelation],
    pub(super) claims: &'a Claims,
    pub(super) aliases: &'a [String],
    /// Its damaged and lost files.
    pub(super) damaged: &'a Marks,
}

/// The URL of an item's page; the link itself may open a file of the item.
pub(super) fn page_of(link: &str) -> Option<String> {
    (!link.is_empty()).then(|| format!("{link}?page"))
}

/// A seal, whose digest is null until it has been computed.
pub(super) fn seal_json(seal: &Seal) -> Value {
    let digest = seal.digest.map(|digest| digest.to_string());
    json!({"date": seal.at.to_rfc3339(), "digest": digest})
}

pub(super) fn item_json(details: &ItemDetails<'_>) -> String {
    let &ItemDetails {
        item,
        draft,
        title,
        link,
        relations,
        removed,
        claims,
        aliases,
        damaged,
    } = details;
    let mut object = json::item(item);
    object.insert("draft".into(), json!(draft));
    let available = item.life.available.as_ref();
    object.insert(
        "available".into(),
        json!(available.map(ibi::Timestamp::to_rfc3339)),
    );
    let sealed = item.life.sealed.as_ref();
    object.insert("sealed".into(), json!(sealed.map(seal_json)));
    object.insert("withdrawn".into(), withdrawn_json(item));
    object.insert("citation".into(), json!(item.life.citation));
    object.insert("title".into(), json!(title));
    object.insert("persistent_url".into(), json!(link));
    object.insert("page_url".into(), json!(page_of(link)));
    let service = item.service.as_ref().map(json::names);
    object.insert("archiveservice".into(), json!(service));
    object.insert(
        "language".into(),
        json!(item.language.map(|language| language.to_string())),
    );
    object.insert("target".into(), json!(item.target));
    object.insert("aliases".into(), json!(aliases));
    let relations = relations
        .iter()
        .map(|(name, names)| (name.clone(), Value::Object(json::names(names))));
    object.insert("relations".into(), Value::Object(relations.collect()));
    let removed = removed.iter().map(|it| {
        let mut target = json::names(&it.target);
        target.insert("withdrawn".into(), json!(it.is_withdrawn));
        (it.name.clone(), Value::Object(target))
    });
    object.insert("removed_relations".into(), Value::Object(removed.collect()));
    let listed = claims.listed.iter().map(|(kind, names)| {
        let mut claim = json::names(names);
        claim.insert("relation".into(), json!(json::relation(kind)));
        Value::Object(claim)
    });
    object.insert("claims".into(), listed.collect());
    object.insert("other_claims".into(), json!(claims.others));
    let damaged = damaged.iter().map(|(path, mark)| {
        json!({
            "path": shown(path),
            "lost": mark.found == Found::Nothing,
            "unreadable": mark.found == Found::Unreadable,
            "since": mark.since.to_rfc3339(),
        })
    });
    object.insert("damaged".into(), damaged.collect());
    json::pretty(&Value::Object(object))
}

/// Since when and why an item is withdrawn or was removed, or null.
fn withdrawn_json(item: &Item) -> Value {
    let withdrawn = item.life.withdrawn.as_ref();
    json!(withdrawn.map(
        |it| json!({ "date": it.at.to_rfc3339(), "reason": it.reason, "copy": it.is_of_copy })
    ))
}

pub(super) fn item_text(details: &ItemDetails<'_>) -> String {
    let &ItemDetails {
        item,
        draft,
        title,
        link,
        relations,
        removed,
        claims,
        aliases,
        damaged,
    } = details;
    let mut lines = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("{name:<16} {}\n", OneLine(value)));
        }
    };
    add("rep", item.names.rep().map(ToString::to_string));
    add("ibip", item.names.ibip().map(ToString::to_string));
    add("state", Some(item.state.to_string()));
    add("draft", draft.then(|| "yes".to_owned()));
    let available = item.life.available.as_ref();
    add("available", available.map(ibi::Timestamp::to_rfc3339));
    if let Some(seal) = &item.life.sealed {
        let holds = seal.holds_at(&SystemClock.now());
        let label = if holds { "sealed" } else { "sealed-from" };
        add(label, Some(seal.at.to_rfc3339()));
    }
    let withdrawn = item.life.withdrawn.as_ref();
    let of_copy = withdrawn.is_some_and(|it| it.is_of_copy);
    let name = if of_copy {
        "copywithdrawn"
    } else {
        "withdrawn"
    };
    add(name, withdrawn.map(ToString::to_string));
    add("citation", item.life.citation.clone());
    add("title", title.map(str::to_owned));
    add("link", Some(link.to_owned()));
    add("page", page_of(link));
    add(
        "removed",
        item.removed_at.as_ref().map(|time| time.to_rfc3339()),
    );
    add(
        "archiveservice",
        item.service.as_ref().map(Names::preferred),
    );
    add(
        "language",
        item.language.map(|language| language.to_string()),
    );
    add("target", item.target.clone());
    for alias in aliases {
        add("alias", Some(alias.clone()));
    }
    for (path, mark) in damaged {
        let path = shown(path);
        let since = mark.since.to_rfc3339();
        let said = match mark.found {
            Found::Content(_) => message!("{path}, damaged; found on {since}", path, since),
            Found::Unreadable => message!("{path}, unreadable; found on {since}", path, since),
            Found::Nothing => message!("{path}, lost; found on {since}", path, since),
        };
        add("damaged", Some(localized(&said)));
    }
    for (name, names) in relations {
        add(name, Some(names.preferred()));
    }
    for relation in removed {
        let names = relation.target.preferred();
        let said = if relation.is_withdrawn {
            message!("{names}, withdrawn", names)
        } else {
            message!("{names}, removed", names)
        };
        add(&relation.name, Some(localized(&said)));
    }
    let claimed_by = localized(&message!("claimed by"));
    for (kind, names) in &claims.listed {
        let said = format!("{}, {}", names.preferred(), kind.pair_name());
        add(&claimed_by, Some(said));
    }
    if claims.others > 0 {
        let more = plural!("{count} more", "{count} more", count = claims.others);
        add(&claimed_by, Some(localized(&more)));
    }
    lines.concat()
}

/// The items of a list, each with its title if titles are wanted.
pub(super) fn list_json(items: &[ListedItem]) -> String {
    let items = items.iter().map(|listed| {
        let mut object = json::item(&listed.item);
        object.insert("draft".into(), json!(listed.is_draft));
        object.insert("withdrawn".into(), withdrawn_json(&listed.item));
        if let Some(title) = &listed.title {
            object.insert("title".into(), json!(title));
        }
        if let Some(copies) = listed.copies {
            object.insert("copies".into(), json!(copies));
        }
        Value::Object(object)
    });
    json::pretty(&Value::Array(items.collect()))
}

/// State, rep and IBIp, with `-` for an unknown form, the number of copies if it is wanted, whether the item is withdrawn or a
/// draft, and the title if it is wanted and there is one.
pub(super) fn list_line(listed: &ListedItem) -> String {
    let item = &listed.item;
    let or_dash = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
    let mark = match (&item.life.withdrawn, item.state) {
        (Some(_), State::Original | State::Copy) => " withdrawn",
        _ if listed.is_draft => " draft",
        _ => "",
    };
    let title = listed.title.clone().flatten();
    let title = title.map_or(String::new(), |title| format!("  {}", OneLine(title)));
    let copies = listed.copies.map_or(String::new(), |copies| {
        format!(" {}", or_dash(copies.map(|count| count.to_string())))
    });
    format!(
        "{:<8} {} {}{copies}{mark}{title}\n",
        item.state.to_string(),
        or_dash(item.names.rep().map(ToString::to_string)),
        or_dash(item.names.ibip().map(ToString::to_string)),
    )
}

pub(super) fn report_json(store: &Path, report: &CheckReport) -> String {
    json::pretty(&report_value(store, report))
}

/// The same in one line, for a list of reports.
pub(super) fn report_line(store: &Path, report: &CheckReport) -> String {
    json::line(&report_value(store, report))
}

fn report_value(store: &Path, report: &CheckReport) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "code": finding.code.word(),
                "severity": finding.code.severity().to_string(),
                "subject": finding.subject,
                "sentence": finding.sentence(),
                "remedy": finding.code.remedy(),
                "repairable": finding.repairable,
                "repaired": finding.repaired,
            })
        })
        .collect();
    json!({
        "store": json::path(store),
        "in_use": report.in_use,
        "items": report.items,
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "notices": report.count(Severity::Notice),
        "findings": findings,
    })
}

/// The kind of report: of a run that repairs, or of what one would repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repairs {
    /// Repairs, if any, were made.
    Made,
    /// A dry run.
    Planned,
}

/// Code, subject, problem and remedy; severity, and whether it is repaired.
pub(super) fn finding_line(finding: &CheckFinding, repairs: Repairs) -> String {
    let severity = finding.code.severity();
    let outcome = match (finding.repaired, finding.repairable, repairs) {
        (true, ..) => message!("{severity}, repaired", severity),
        (_, true, Repairs::Planned) => message!("{severity}, would be repaired", severity),
        _ => severity.message(),
    };
    let sentence = message!(
        "{sentence}; {remedy} ({outcome})",
        sentence = finding.sentence(),
        remedy = finding.code.remedy(),
        outcome
    );
    // Control characters in a file must not add lines.
    format!(
        "{}: {}: {}\n",
        finding.code.word(),
        OneLine(&finding.subject),
        OneLine(localized(&sentence))
    )
}

pub(super) fn report_text(report: &CheckReport, repairs: Repairs) -> String {
    let mut text: String = report
        .findings
        .iter()
        .map(|finding| finding_line(finding, repairs))
        .collect();
    let repaired = report.findings.iter().filter(|finding| finding.repaired);
    let items = plural!("{count} item", "{count} items", count = report.items);
    let findings = plural!(
        "{count} finding",
        "{count} findings",
        count = report.findings.len()
    );
    let line = match repaired.count() {
        0 => message!("{items}, {findings}", items, findings),
        repaired => message!(
            "{items}, {findings}, {repaired}",
            items,
            findings,
            repaired = plural!("{count} repaired", "{count} repaired", count = repaired)
        ),
    };
    text.push_str(&localized(&line));
    text.push('\n');
    text
}
