//! What symbolic links say in either tree.

use ibifs::formats::links::{read_in_ibip_tree, written_in_ibip_tree};

const REP: [&str; 4] = ["example.org", "archive-a", "2026", "11.21.10.00"];
const IBIP: [&str; 2] = ["8JMKD3MGP8W", "34PGRBS"];

/// The first byte is how deep in the item the link lies, the rest is its text.
pub fn check(data: &[u8]) {
    let Some((first, target)) = data.split_first() else {
        return;
    };
    let depth = usize::from(first % 8);
    let read = read_in_ibip_tree(target, depth, Some(REP), Some(IBIP[0]));
    let kept = written_in_ibip_tree(target, depth, Some(IBIP[0]));
    let bound = target.len() + 3 * (depth + 4) + REP.join("/").len() + IBIP[0].len();
    assert!(read.len() <= bound && kept.len() <= bound);
    same_place(target, &read, depth);
    same_place(&kept, target, depth);
    // What is written is read back.
    let again = read_in_ibip_tree(&kept, depth, Some(REP), Some(IBIP[0]));
    assert_eq!(
        again.escape_ascii().to_string(),
        target.escape_ascii().to_string()
    );
    if target.first() == Some(&b'/') {
        assert_eq!((&read[..], &kept[..]), (target, target));
    }
    // Of an item without the other form nothing is made up.
    for alone in [
        read_in_ibip_tree(target, depth, None, None),
        written_in_ibip_tree(target, depth, None),
    ] {
        assert!(alone.len() <= target.len() + 6);
    }
}

/// A text met in the rep tree and one met in the IBIp tree lead to the same place.
fn same_place(in_rep_tree: &[u8], in_ibip_tree: &[u8], depth: usize) {
    let (Some(one), Some(other)) = (
        arrive(&REP, in_rep_tree, depth),
        arrive(&IBIP, in_ibip_tree, depth),
    ) else {
        return;
    };
    assert_eq!(
        in_item(&one),
        in_item(&other),
        "{} and {}",
        in_rep_tree.escape_ascii(),
        in_ibip_tree.escape_ascii()
    );
}

/// Walks from the directory of a link to where its text leads; None where that depends on what
/// lies on the way.
fn arrive(item: &[&str], target: &[u8], depth: usize) -> Option<Vec<Vec<u8>>> {
    let mut place: Vec<Vec<u8>> = item.iter().map(|name| name.as_bytes().to_vec()).collect();
    place.extend((0..depth).map(|level| format!("d{level}").into_bytes()));
    if target.first() == Some(&b'/') {
        place = vec![b"/".to_vec()];
    }
    let mut went_down = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if went_down => return None,
            b".." => {
                place.pop();
            }
            name => {
                went_down = true;
                place.push(name.to_vec());
            }
        }
    }
    Some(place)
}

/// One name for the item, whichever form leads to it.
fn in_item(place: &[Vec<u8>]) -> Vec<Vec<u8>> {
    for item in [&REP[..], &IBIP[..]] {
        let leads = place.len() >= item.len()
            && place
                .iter()
                .zip(item)
                .all(|(found, name)| found == name.as_bytes());
        if leads {
            let mut named = vec![b"the item".to_vec()];
            named.extend_from_slice(&place[item.len()..]);
            return named;
        }
    }
    place.to_vec()
}
