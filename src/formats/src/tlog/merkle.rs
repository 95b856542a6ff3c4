//! The tree of hashes over the entries of a log (RFC 6962, section 2.1; RFC 9162 has how proofs are checked).

use ring::digest::{Context, SHA256};

use super::LogError;

/// A hash of an entry or of a part of the tree.
pub type Hash = [u8; 32];

/// The most hashes of a proof: a log has fewer than 2^63 entries.
pub const MOST_HASHES: usize = 63;

fn hash_of(parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

/// The hash of an entry.
#[must_use]
pub fn leaf(entry: &[u8]) -> Hash {
    hash_of(&[&[0], entry])
}

/// The hash of two parts.
#[must_use]
pub fn node(left: &Hash, right: &Hash) -> Hash {
    hash_of(&[&[1], left, right])
}

/// The root of a log without entries.
#[must_use]
pub fn empty() -> Hash {
    hash_of(&[])
}

/// The root over hashes of parts that have one size, a power of two, but the last, which may be smaller. None if there are
/// none.
#[must_use]
pub fn root(hashes: &[Hash]) -> Option<Hash> {
    match hashes {
        [] => None,
        [one] => Some(*one),
        _ => {
            let (left, right) = hashes.split_at(split(hashes.len() as u64) as usize);
            Some(node(&root(left)?, &root(right)?))
        }
    }
}

/// The greatest power of two that is smaller than a number above 1.
fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// Goes down the tree of a log to the part that ends before an entry, until the part `is_reached`, which is called with its
/// first number and the one after its last. Returns the hashes of the parts beside the way, and the part.
fn descend<E>(
    before: u64,
    size: u64,
    is_reached: impl Fn(u64, u64) -> bool,
    part: &mut impl FnMut(u64, u64) -> Result<Hash, E>,
) -> Result<(Vec<Hash>, (u64, u64)), E> {
    let (mut begin, mut end) = (0, size);
    let mut hashes = Vec::new();
    while !is_reached(begin, end) {
        let middle = begin + split(end - begin);
        if before <= middle {
            hashes.push(part(middle, end)?);
            end = middle;
        } else {
            hashes.push(part(begin, middle)?);
            begin = middle;
        }
    }
    Ok((hashes, (begin, end)))
}

/// Computes the hashes of a proof from those of a log: `part` gives the hash of the entries from the first number up to the
/// second, of which the first is a multiple of the power of two that spans both.
///
/// # Errors
/// Those of `part`.
pub fn inclusion<E>(
    index: u64,
    size: u64,
    part: &mut impl FnMut(u64, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let is_entry = |begin, end| end - begin <= 1;
    let (mut hashes, _) = descend(index + 1, size, is_entry, part)?;
    hashes.reverse();
    Ok(hashes)
}

/// The hashes of a proof that the log of a size has grown from that of an older one, from 1 to the size.
///
/// # Errors
/// Those of `part`, which is that of [`inclusion`].
pub fn consistency<E>(
    older: u64,
    size: u64,
    part: &mut impl FnMut(u64, u64) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let is_last = |_, end| end <= older;
    let (mut hashes, (begin, end)) = descend(older, size, is_last, part)?;
    // The older log is known to the verifier, unless it is not a whole part.
    if begin > 0 {
        hashes.push(part(begin, end)?);
    }
    hashes.reverse();
    Ok(hashes)
}

/// Checks that the entry with a number and a hash is in the log of a size and a root.
///
/// # Errors
/// [`LogError::NotIncluded`].
pub fn check_inclusion(
    (index, entry): (u64, &Hash),
    hashes: &[Hash],
    (size, root): (u64, &Hash),
) -> Result<(), LogError> {
    if index >= size {
        return Err(LogError::NotIncluded);
    }
    let (mut at, mut last, mut hash) = (index, size - 1, *entry);
    for other in hashes {
        if last == 0 {
            return Err(LogError::NotIncluded);
        }
        if at & 1 == 1 || at == last {
            hash = node(other, &hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(&hash, other);
        }
        at >>= 1;
        last >>= 1;
    }
    if last == 0 && hash == *root {
        Ok(())
    } else {
        Err(LogError::NotIncluded)
    }
}

/// Checks that the log of a size and a root has grown from an older one.
///
/// # Errors
/// [`LogError::NotIncluded`].
pub fn check_consistency(
    (older, older_root): (u64, &Hash),
    hashes: &[Hash],
    (size, root): (u64, &Hash),
) -> Result<(), LogError> {
    let wrong = Err(LogError::NotIncluded);
    if older > size {
        return wrong;
    }
    if older == size || older == 0 {
        let is_same = older == 0 || older_root == root;
        return if is_same && hashes.is_empty() {
            Ok(())
        } else {
            wrong
        };
    }
    let whole = older.is_power_of_two().then_some(*older_root);
    let mut hashes = whole.into_iter().chain(hashes.iter().copied());
    let Some(first) = hashes.next() else {
        return wrong;
    };
    let (mut at, mut last) = (older - 1, size - 1);
    while at & 1 == 1 {
        at >>= 1;
        last >>= 1;
    }
    let (mut before, mut now) = (first, first);
    for other in hashes {
        if last == 0 {
            return wrong;
        }
        if at & 1 == 1 || at == last {
            before = node(&other, &before);
            now = node(&other, &now);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            now = node(&now, &other);
        }
        at >>= 1;
        last >>= 1;
    }
    if last == 0 && before == *older_root && now == *root {
        Ok(())
    } else {
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::Hex;
    use std::convert::Infallible;

    /// The entries and roots of the tests of Certificate Transparency.
    const ENTRIES: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn hashes(count: u64) -> Vec<Hash> {
        (0..count)
            .map(|number| leaf(&number.to_be_bytes()))
            .collect()
    }

    fn within(hashes: &[Hash]) -> impl FnMut(u64, u64) -> Result<Hash, Infallible> + '_ {
        |begin, end| Ok(root(&hashes[begin as usize..end as usize]).expect("some entries"))
    }

    #[test]
    fn the_roots_of_others() {
        let leaves: Vec<Hash> = ENTRIES.iter().map(|entry| leaf(entry)).collect();
        for (count, expected) in (1..).zip(ROOTS) {
            let root = root(&leaves[..count]).expect("some entries");
            assert_eq!(Hex(&root).to_string(), expected, "{count}");
        }
        let none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Hex(&empty()).to_string(), none);
        assert_eq!(root(&[]), None);
    }

    #[test]
    fn every_entry_is_proved_and_no_other() {
        let (all, other) = (hashes(70), leaf(b"other"));
        for size in 1..=70 {
            let log = &all[..size as usize];
            let whole = root(log).expect("some entries");
            for index in 0..size {
                let Ok(proof) = inclusion(index, size, &mut within(log));
                let entry = &log[index as usize];
                assert_eq!(
                    check_inclusion((index, entry), &proof, (size, &whole)),
                    Ok(())
                );
                for (index, entry, proof, size) in [
                    (index + 1, entry, proof.clone(), size),
                    (index, &other, proof.clone(), size),
                    (index, entry, [proof.clone(), vec![other]].concat(), size),
                    (index, entry, proof.iter().skip(1).copied().collect(), size),
                    (index, entry, proof.clone(), size * 2),
                    (size, entry, proof.clone(), size),
                ] {
                    let is_same = proof.is_empty() && size == 1 && index == 0 && *entry == log[0];
                    let checked = check_inclusion((index, entry), &proof, (size, &whole));
                    assert_eq!(checked.is_ok(), is_same, "{index} of {size}");
                }
            }
        }
    }

    #[test]
    fn a_log_that_has_grown_is_proved_and_no_other() {
        let all = hashes(70);
        for size in 1..=70 {
            let log = &all[..size as usize];
            let whole = root(log).expect("some entries");
            for older in 1..=size {
                let before = root(&all[..older as usize]).expect("some entries");
                let Ok(proof) = consistency(older, size, &mut within(log));
                assert!(proof.len() <= MOST_HASHES);
                let check = |older, before: &Hash, proof: &[Hash]| {
                    check_consistency((older, before), proof, (size, &whole))
                };
                assert_eq!(check(older, &before, &proof), Ok(()), "{older} to {size}");
                let other = leaf(b"other");
                assert_eq!(check(older, &other, &proof), Err(LogError::NotIncluded));
                let more = [proof.clone(), vec![other]].concat();
                assert_eq!(check(older, &before, &more), Err(LogError::NotIncluded));
                assert_eq!(check(size + 1, &before, &proof), Err(LogError::NotIncluded));
                if let Some((_, fewer)) = proof.split_last() {
                    assert_eq!(check(older, &before, fewer), Err(LogError::NotIncluded));
                }
            }
            assert_eq!(
                check_consistency((0, &empty()), &[], (size, &whole)),
                Ok(())
            );
        }
    }
}
