//! Checks the metadata texts of items: what their authors should correct. An error there changes no relation and no
//! name.

use super::finding::{CheckCode, CheckFinding};
use crate::archive::tree::{Place, Tree};
use crate::formats::item::Names;
use crate::formats::metadata::{MetadataProblem, MetadataProblemKind, check};
use ibi::message::{Localize, Message};

/// Returns what should be corrected in the metadata text of an item; nothing if it has no text, or one that cannot
/// be read from the disk.
#[must_use]
pub fn metadata_problems(tree: &Tree, names: &Names) -> Vec<MetadataProblem> {
    match tree.read_metadata_text(&Place::of(names)) {
        Ok(Some(text)) => check(&text),
        _ => Vec::new(),
    }
}

/// The findings about the metadata text of an item.
pub(super) fn metadata_findings(tree: &Tree, names: &Names) -> Vec<CheckFinding> {
    let problems = metadata_problems(tree, names);
    let mut findings = Vec::new();
    for code in [
        CheckCode::UnknownField,
        CheckCode::BrokenMetadata,
        CheckCode::DoubtfulField,
        CheckCode::NoTitle,
    ] {
        let is_its = |problem: &&MetadataProblem| code_of(problem) == code;
        let mut its = problems.iter().filter(is_its);
        let Some(first) = its.next() else {
            continue;
        };
        let finding = CheckFinding::of(code, names);
        findings.push(match code {
            CheckCode::NoTitle => finding,
            _ => {
                let all = std::iter::once(first).chain(its.take(MOST_LINES - 1));
                let all: Vec<Message> = all.map(Localize::message).collect();
                match Message::joined(all) {
                    Some(all) => finding.with_detail(all),
                    None => finding,
                }
            }
        });
    }
    findings
}

/// The most lines that one finding names.
const MOST_LINES: usize = 3;

fn code_of(problem: &MetadataProblem) -> CheckCode {
    match problem.kind {
        MetadataProblemKind::UnknownName { .. } => CheckCode::UnknownField,
        MetadataProblemKind::Unreadable(_) => CheckCode::BrokenMetadata,
        MetadataProblemKind::NoTitle => CheckCode::NoTitle,
        MetadataProblemKind::UnknownDate(_)
        | MetadataProblemKind::WrongOrcid(_)
        | MetadataProblemKind::UnknownCommand(_) => CheckCode::DoubtfulField,
    }
}
