//! What is imported: tables, and the text that says of a package's files what its format cannot.

use ibifs::formats::{mtree, table};

use super::{plain, sentence};

/// Every fault of a table is a sentence, and names the lines in their order; entries that can be read are
/// written as what reads back to them.
pub fn check(data: &[u8]) {
    let table = table::parse(data);
    for fault in &table.faults {
        plain(fault);
    }
    let lines: Vec<u64> = table.rows.iter().map(|row| row.line).collect();
    assert!(lines.is_sorted(), "{lines:?}");
    match mtree::parse(data) {
        Ok(entries) => {
            let text = mtree::text("fuzz", &entries);
            assert_eq!(mtree::parse(&text), Ok(entries));
        }
        Err(error) => sentence(&error),
    }
}
