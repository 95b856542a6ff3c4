//! The closure of the relations of an item (ibi(7), "Relations"), as far as this Archive knows them.

use super::memo::Memo;
use crate::archive::store::Item;
use crate::archive::{ArchiveError, matching_translation};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::Names;
use ibi::relation::{Language, MetadataFormat, Modifier, Step};

/// The most subjects of one answer, since the number of items that name one is not limited.
const MOST_SUBJECTS: usize = 1000;

/// The subject of pairs of an answer, and the relation that leads to it: `.translation(pt).metadata`, or empty
/// for the item itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) relation: String,
    pub(super) target: RelatedItem,
}

/// The thing that a relation leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RelatedItem {
    /// An item, held here or not.
    Item(Names),
    /// The metadata text of an item whose metadata are not an item.
    Text(Item),
    /// The description of an item in a format, named by these signs after its identifier.
    Description {
        item: Item,
        metadata: Option<Names>,
        signs: String,
    },
}

impl Subject {
    pub(super) fn itself(item: &Item) -> Subject {
        Subject {
            relation: String::new(),
            target: RelatedItem::Item(item.names.clone()),
        }
    }

    pub(super) fn is_metadata(&self) -> bool {
        self.relation.contains(".metadata")
    }
}

/// The item, and the targets of all fourteen compositions, with every parameter.
pub(super) fn all(memo: &Memo<'_>, item: &Item) -> Result<Vec<Subject>, ArchiveError> {
    let mut found = vec![Subject::itself(item)];
    for modifier in Modifier::compositions() {
        for steps in with_formats(modifier.steps()) {
            found.extend(follow(memo, item, &steps)?.reached);
            found.truncate(MOST_SUBJECTS);
        }
    }
    Ok(found)
}

/// A composition as it is, and with the metadata format that every Archive has.
fn with_formats(steps: &[Step]) -> Vec<Vec<Step>> {
    let formatted: Vec<Step> = steps
        .iter()
        .map(|step| match step {
            Step::Metadata(None) => Step::Metadata(Some(MetadataFormat::oai_dc())),
            other => other.clone(),
        })
        .collect();
    if formatted == steps {
        vec![formatted]
    } else {
        vec![steps.to_vec(), formatted]
    }
}

/// The result of following a composition.
pub(super) struct Followed {
    /// The subjects at its end.
    pub(super) reached: Vec<Subject>,
    /// Items on the way that are held elsewhere. Other Archives know how the composition continues.
    pub(super) elsewhere: Vec<Subject>,
}

/// Follows a composition. A step without a parameter leads to every target.
pub(super) fn follow(
    memo: &Memo<'_>,
    item: &Item,
    steps: &[Step],
) -> Result<Followed, ArchiveError> {
    let mut current = vec![Subject::itself(item)];
    let mut elsewhere = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let is_last = index + 1 == steps.len();
        let mut next = Vec::new();
        for found in current {
            let before = next.len();
            step_from(memo, &found, step, is_last, &mut next)?;
            if next.len() == before
                && index > 0
                && let RelatedItem::Item(names) = &found.target
                && memo.held(names)?.is_none()
            {
                elsewhere.push(found);
            }
            next.truncate(MOST_SUBJECTS);
        }
        current = next;
    }
    elsewhere.truncate(MOST_SUBJECTS);
    Ok(Followed {
        reached: current,
        elsewhere,
    })
}

fn step_from(
    memo: &Memo<'_>,
    found: &Subject,
    step: &Step,
    is_last: bool,
    next: &mut Vec<Subject>,
) -> Result<(), ArchiveError> {
    let mut add = |more: &str, target: RelatedItem| {
        let relation = format!("{}{more}", found.relation);
        next.push(Subject { relation, target });
    };
    let names = match &found.target {
        RelatedItem::Item(names) => names,
        RelatedItem::Description {
            metadata: Some(names),
            ..
        } => names,
        // A text has no relations of its own.
        RelatedItem::Text(_) | RelatedItem::Description { metadata: None, .. } => return Ok(()),
    };
    match step {
        Step::LastEdition => {
            if let Some(last) = memo.last_edition(names)? {
                add(".lastedition", RelatedItem::Item(last));
            }
        }
        Step::Translation(wanted) => {
            // In a format, the translation of the metadata has that format too.
            let leading = |to: Names, sign: &str| match &found.target {
                RelatedItem::Description { item, signs, .. } => RelatedItem::Description {
                    item: item.clone(),
                    metadata: Some(to),
                    signs: format!("{signs}{sign}"),
                },
                _ => RelatedItem::Item(to),
            };
            let translations = memo.translations(names)?;
            if translations.is_empty() && wanted.is_none() && memo.held(names)?.is_some() {
                // An item without a language has no other name than this.
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
        Step::Metadata(None) => match memo.metadata(names)? {
            Some(metadata) => add(".metadata", RelatedItem::Item(metadata)),
            None if is_last => {
                if let Some(item) = memo.held(names)?
                    && memo.has_metadata_text(&item)?
                {
                    add(".metadata", RelatedItem::Text(item));
                }
            }
            None => {}
        },
        Step::Metadata(Some(format)) => {
            if let Some(item) = memo.held(names)?
                && let Some(known) = DescriptionFormat::from_word(format.as_str())
                && memo.has_format(&item, known)?
            {
                let metadata = memo.metadata(names)?;
                let signs = format!(":({format})");
                let target = RelatedItem::Description {
                    item,
                    metadata,
                    signs,
                };
                add(&format!(".metadata({format})"), target);
            }
        }
    }
    Ok(())
}

/// All translations, each by its language; or the one that satisfies a wanted language, by that language.
fn chosen(
    translations: Vec<(Language, Names)>,
    wanted: Option<&Language>,
) -> Vec<(Language, Names)> {
    let Some(wanted) = wanted else {
        return translations;
    };
    let one = matching_translation(translations.iter(), wanted);
    one.map(|(_, to)| (*wanted, to.clone()))
        .into_iter()
        .collect()
}
