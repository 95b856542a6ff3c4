//! Lists of federated Archives, read from a file or from the network.

use ibifs::formats::federation::{Admitted, MOST_ARCHIVES, parse, written};

use super::sentence;

/// A list that is read is written and read back as the same; what may come from the network is part of
/// what a file may say, and has no address of a private network.
pub fn check(data: &[u8]) {
    let list = match parse(data, Admitted::All) {
        Ok(list) => list,
        Err(error) => {
            sentence(&error);
            assert!(parse(data, Admitted::Public).is_err());
            return;
        }
    };
    assert!(list.len() <= MOST_ARCHIVES);
    let text = written(&list);
    assert_eq!(text.lines().count(), list.len());
    assert_eq!(parse(text.as_bytes(), Admitted::All).as_ref(), Ok(&list));
    match parse(data, Admitted::Public) {
        Ok(public) => {
            assert_eq!(public, list);
            assert!(list.iter().all(|archive| archive.url.may_be_public()));
        }
        Err(error) => {
            sentence(&error);
            assert!(!list.iter().all(|archive| archive.url.may_be_public()));
        }
    }
}
