//! All that is related to an item, by the relations of SPEC 6, as far as it is known here.

use super::known::Known;
use crate::archive::store::Item;
use crate::archive::{ArchiveError, meeting};
use crate::formats::item::Names;
use ibi::relation::{Format, Language, Modifier, Step};

/// No item is said to have more relations: one named by very many others would take for ever.
const MOST_FOUND: usize = 1000;

/// Something related, and by which relation: `.translation(pt).metadata`, or nothing for the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) relation: String,
    pub(super) target: Target,
}

/// What a relation leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An item, held here or not.
    Item(Names),
    /// The metadata text of an item whose metadata are no item.
    Text(Item),
    /// The Dublin Core of an item, asked for by these signs after its identifier.
    DublinCore {
        item: Item,
        metadata: Option<Names>,
        signs: String,
    },
}

impl Found {
    pub(super) fn itself(item: &Item) -> Found {
        Found {
            relation: String::new(),
            target: Target::Item(item.names.clone()),
        }
    }

    pub(super) fn is_metadata(&self) -> bool {
        self.relation.contains(".metadata")
    }
}

/// The item, and all that the fourteen compositions lead to, with every parameter.
pub(super) fn all(known: &Known<'_>, item: &Item) -> Result<Vec<Found>, ArchiveError> {
    let mut found = vec![Found::itself(item)];
    for modifier in Modifier::compositions() {
        for steps in with_formats(modifier.steps()) {
            found.extend(follow(known, item, &steps)?.reached);
            found.truncate(MOST_FOUND);
        }
    }
    Ok(found)
}

/// A composition as it is, and with the format in which metadata are had.
fn with_formats(steps: &[Step]) -> Vec<Vec<Step>> {
    let formatted: Vec<Step> = steps
        .iter()
        .map(|step| match step {
            Step::Metadata(None) => Step::Metadata(Some(Format::oai_dc())),
            other => other.clone(),
        })
        .collect();
    if formatted == steps {
        vec![formatted]
    } else {
        vec![steps.to_vec(), formatted]
    }
}

/// Where a composition leads.
pub(super) struct Way {
    /// What is at its end.
    pub(super) reached: Vec<Found>,
    /// Items on it from which others know the way on: they are held elsewhere.
    pub(super) elsewhere: Vec<Found>,
}

/// Follows a composition; a step without its parameter, to each.
pub(super) fn follow(known: &Known<'_>, item: &Item, steps: &[Step]) -> Result<Way, ArchiveError> {
    let mut current = vec![Found::itself(item)];
    let mut elsewhere = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let is_last = index + 1 == steps.len();
        let mut next = Vec::new();
        for found in current {
            let before = next.len();
            take(known, &found, step, is_last, &mut next)?;
            if next.len() == before
                && index > 0
                && let Target::Item(names) = &found.target
                && known.held(names)?.is_none()
            {
                elsewhere.push(found);
            }
            next.truncate(MOST_FOUND);
        }
        current = next;
    }
    elsewhere.truncate(MOST_FOUND);
    Ok(Way {
        reached: current,
        elsewhere,
    })
}

fn take(
    known: &Known<'_>,
    found: &Found,
    step: &Step,
    is_last: bool,
    next: &mut Vec<Found>,
) -> Result<(), ArchiveError> {
    let mut add = |more: &str, target: Target| {
        let relation = format!("{}{more}", found.relation);
        next.push(Found { relation, target });
    };
    let names = match &found.target {
        Target::Item(names) => names,
        Target::DublinCore {
            metadata: Some(names),
            ..
        } => names,
        // A text has no relations of its own.
        Target::Text(_) | Target::DublinCore { metadata: None, .. } => return Ok(()),
    };
    match step {
        Step::LastEdition => {
            if let Some(last) = known.last_edition(names)? {
                add(".lastedition", Target::Item(last));
            }
        }
        Step::Translation(wanted) => {
            // In a format, the translation of the metadata is had in the format.
            let leading = |to: Names, sign: &str| match &found.target {
                Target::DublinCore { item, signs, .. } => Target::DublinCore {
                    item: item.clone(),
                    metadata: Some(to),
                    signs: format!("{signs}{sign}"),
                },
                _ => Target::Item(to),
            };
            let translations = known.translations(names)?;
            if translations.is_empty() && wanted.is_none() && known.held(names)?.is_some() {
                // What has no language is had under no name but this.
                add(".translation", leading(names.clone(), "+"));
            }
            for (language, to) in chosen(translations, wanted.as_ref()) {
                let parameter = format!("({language})");
                add(
                    &format!(".translation{parameter}"),
                    leading(to, &format!("+{parameter}")),
                );
            }
        }
        Step::Metadata(None) => match known.metadata(names)? {
            Some(metadata) => add(".metadata", Target::Item(metadata)),
            None if is_last => {
                if let Some(item) = known.held(names)?
                    && known.has_metadata_text(&item)?
                {
                    add(".metadata", Target::Text(item));
                }
            }
            None => {}
        },
        Step::Metadata(Some(format)) if format.is_oai_dc() => {
            if let Some(item) = known.held(names)? {
                let metadata = known.metadata(names)?;
                let signs = format!(":({format})");
                let target = Target::DublinCore {
                    item,
                    metadata,
                    signs,
                };
                add(&format!(".metadata({format})"), target);
            }
        }
        Step::Metadata(Some(_)) => {}
    }
    Ok(())
}

/// All translations, each by its language; or the one that meets a wanted language, by that one.
fn chosen(
    translations: Vec<(Language, Names)>,
    wanted: Option<&Language>,
) -> Vec<(Language, Names)> {
    let Some(wanted) = wanted else {
        return translations;
    };
    let one = meeting(translations.iter(), wanted);
    one.map(|(_, to)| (*wanted, to.clone()))
        .into_iter()
        .collect()
}
