//! Values with separators (RFC 4180) as a table.

use maud::{Markup, html};

use super::clipped;

/// The numbers of rows and columns that are shown.
const MOST_ROWS: usize = 20;
const MOST_COLUMNS: usize = 20;
/// The longest value that is shown, in characters.
const LONGEST_VALUE: usize = 200;
/// The separators that are in use.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// The beginning of a text as a table whose first row has the names of the columns, and whether all of it is shown.
/// The last row of a text that is not whole is left out. None if there is no row.
pub(crate) fn table(text: &str, separator: Option<u8>, is_whole: bool) -> Option<(Markup, bool)> {
    let separator = separator.unwrap_or_else(|| most_frequent(text));
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(text.as_bytes());
    let mut rows: Vec<csv::StringRecord> = Vec::new();
    let mut is_all = true;
    for row in reader.records().map_while(Result::ok) {
        if rows.len() > MOST_ROWS {
            is_all = false;
            break;
        }
        rows.push(row);
    }
    if !is_whole && is_all && rows.len() > 1 {
        rows.pop();
    }
    let columns = rows.iter().map(csv::StringRecord::len).max()?;
    is_all &= columns <= MOST_COLUMNS;
    let (head, rows) = rows.split_first()?;
    let cells = |row: &csv::StringRecord| -> Vec<String> {
        let value = |column| clipped(row.get(column).unwrap_or_default(), LONGEST_VALUE).to_owned();
        (0..columns.min(MOST_COLUMNS)).map(value).collect()
    };
    let table = html! {
        div class="wide" tabindex="0" {
            table {
                thead { tr { @for value in cells(head) { th scope="col" { (value) } } } }
                tbody { @for row in rows { tr { @for value in cells(row) { td { (value) } } } } }
            }
        }
    };
    Some((table, is_all))
}

/// The separator that the first line has most of.
fn most_frequent(text: &str) -> u8 {
    let line = text.lines().next().unwrap_or_default().as_bytes();
    let count = |separator: &u8| line.iter().filter(|byte| *byte == separator).count();
    let found = SEPARATORS.into_iter().rev().max_by_key(count);
    found.unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_values() {
        let (markup, is_all) = table("a;b\n1;\"x;<y>\"\n2\n", None, true).expect("rows");
        assert_eq!(
            markup.into_string(),
            "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th>\
             <th scope=\"col\">b</th></tr></thead><tbody><tr><td>1</td><td>x;&lt;y&gt;</td></tr>\
             <tr><td>2</td><td></td></tr></tbody></table></div>"
        );
        assert!(is_all);
    }

    #[test]
    fn a_long_table_is_cut() {
        let rows = "a,b\n".repeat(100);
        let (markup, is_all) = table(&rows, None, true).expect("rows");
        assert!(!is_all);
        assert_eq!(markup.into_string().matches("<tr>").count(), MOST_ROWS + 1);
        let (markup, is_all) = table(&"a,".repeat(1000), None, true).expect("a row");
        assert!(!is_all);
        assert_eq!(markup.into_string().matches("<th ").count(), MOST_COLUMNS);
        // The last row may be a part of one.
        let (markup, _) = table("a\n1\n2", None, false).expect("rows");
        assert!(!markup.into_string().contains('2'));
    }

    #[test]
    fn the_separator_is_found() {
        for (text, separator) in [
            ("a,b", b','),
            ("a;b,c;d", b';'),
            ("a\tb", b'\t'),
            ("a", b','),
        ] {
            assert_eq!(most_frequent(text), separator, "{text}");
        }
    }
}
