//! Tables of what is imported.

use ibifs::formats::table;

use super::plain;

/// Every fault of a table is a sentence, and names the lines in their order.
pub fn check(data: &[u8]) {
    let table = table::parse(data);
    for fault in &table.faults {
        plain(fault);
    }
    let lines: Vec<u64> = table.rows.iter().map(|row| row.line).collect();
    assert!(lines.is_sorted(), "{lines:?}");
}
