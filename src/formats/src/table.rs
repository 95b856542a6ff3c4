//! The import table: data of items that a tree of repositories does not have, as comma-separated values with
//! one row per item.
//!
//! The first line names the columns, in any order: `rep` and `ibip` (at least one of them), `relations`,
//! `language`, `target`, `alias` and `state`. An empty cell means no value. Semicolons are accepted as
//! separators as well, because spreadsheets write them in countries with decimal commas. No input or output:
//! whether the items exist is checked elsewhere.

use std::collections::BTreeSet;

use csv::{ByteRecord, ReaderBuilder};

use crate::entry::stays_below;
use crate::fixity::abridged;
use crate::item::{Names, State};
use ibi::message::{Localize, Message};
use ibi::pairs::percent_decode;
use ibi::relation::{Language, RelationKind};
use ibi::{AliasPair, Ibi, Ibip, Rep};
use ibi::{display_message, message};

const COLUMNS: [&str; 7] = [
    "rep",
    "ibip",
    "relations",
    "language",
    "target",
    "alias",
    "state",
];

/// The row of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line at which the row begins.
    pub line: u64,
    /// The item.
    pub names: Names,
    /// Its relations, at most one of a kind.
    pub relations: Vec<(RelationKind, Names)>,
    /// Its language.
    pub language: Option<Language>,
    /// Its default file, below `doc/`.
    pub target: Option<Vec<u8>>,
    /// Its older names.
    pub aliases: Vec<AliasPair>,
    /// The state of the item in the Archive: `Original` or `Copy`.
    pub state: Option<State>,
}

/// An invalid line, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// The line.
    pub line: u64,
    /// The error, and the remedy.
    pub what: Message,
}

impl RowError {
    /// An error in a line.
    pub fn new(line: u64, what: Message) -> RowError {
        RowError { line, what }
    }
}

impl Localize for RowError {
    fn message(&self) -> Message {
        message!("line {line}: {what}", line = self.line, what = self.what)
    }
}

display_message!(RowError);

/// The result of parsing a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportTable {
    /// The valid rows.
    pub rows: Vec<Row>,
    /// The errors in the others.
    pub faults: Vec<RowError>,
}

/// Parses a table. An invalid row becomes a fault, and parsing continues.
#[must_use]
pub fn parse(bytes: &[u8]) -> ImportTable {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut table = ImportTable::default();
    let mut lines = LineCounter {
        bytes,
        passed: 0,
        line: 1,
    };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(bytes))
        .from_reader(bytes);
    let mut columns = None;
    let mut record = ByteRecord::new();
    // Reading from memory, with rows of any length, does not fail.
    while let Ok(true) = reader.read_byte_record(&mut record) {
        let line = lines.at(record.position().map_or(0, csv::Position::byte));
        if record.iter().all(<[u8]>::is_empty) {
            continue;
        }
        let Some(columns) = &columns else {
            match header(&record) {
                Ok(found) => columns = Some(found),
                Err(what) => {
                    table.faults.push(RowError::new(line, what));
                    return table;
                }
            }
            continue;
        };
        match row(line, columns, &record) {
            Ok(row) => table.rows.push(row),
            Err(what) => table.faults.push(RowError::new(line, what)),
        }
    }
    if columns.is_none() {
        let what = message!(
            "the table is empty; its first line names columns: {value}",
            value = all()
        );
        table.faults.push(RowError::new(1, what));
    }
    table
}

/// Counts lines. The reader's own count is one too low where lines end in CR LF.
struct LineCounter<'a> {
    bytes: &'a [u8],
    passed: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// The line of the first record at or after a byte.
    fn at(&mut self, byte: u64) -> u64 {
        let byte = usize::try_from(byte).unwrap_or(usize::MAX);
        while let Some(next) = self.bytes.get(self.passed) {
            if self.passed >= byte && !matches!(next, b'\r' | b'\n') {
                break;
            }
            self.line += u64::from(*next == b'\n');
            self.passed += 1;
        }
        self.line
    }
}

fn all() -> String {
    COLUMNS.join(", ")
}

fn delimiter(bytes: &[u8]) -> u8 {
    let first = bytes.split(|byte| *byte == b'\n').next();
    let count = |wanted: u8| {
        let found = first.unwrap_or_default().iter();
        found.filter(|byte| **byte == wanted).count()
    };
    if count(b';') > count(b',') {
        b';'
    } else {
        b','
    }
}

fn header(record: &ByteRecord) -> Result<Vec<&'static str>, Message> {
    let mut columns: Vec<&'static str> = Vec::new();
    for cell in record {
        let name = String::from_utf8_lossy(cell).trim().to_ascii_lowercase();
        let Some(known) = COLUMNS.into_iter().find(|known| *known == name) else {
            return Err(message!(
                "unknown column '{name}'; the columns are {value}",
                name = abridged(name.as_bytes()),
                value = all()
            ));
        };
        if columns.contains(&known) {
            return Err(message!("column '{known}' occurs twice; remove one", known));
        }
        columns.push(known);
    }
    if columns.contains(&"rep") || columns.contains(&"ibip") {
        Ok(columns)
    } else {
        Err(message!(
            "neither a column 'rep' nor a column 'ibip' is present; add one"
        ))
    }
}

fn row(line: u64, columns: &[&str], record: &ByteRecord) -> Result<Row, Message> {
    if record.len() != columns.len() {
        return Err(message!(
            "it has {record} cells, and the first line {columns}; put a cell that has a comma in quotes",
            record = record.len(),
            columns = columns.len()
        ));
    }
    let cell = |name: &str| -> Result<Option<&str>, Message> {
        let at = columns.iter().position(|column| *column == name);
        let Some(bytes) = at.and_then(|at| record.get(at)) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(bytes).map_err(|_| {
            message!(
                "'{bytes}' in column '{name}' is not UTF-8; convert the table, as with \
                 'iconv -f ISO-8859-1 -t UTF-8'",
                bytes = abridged(bytes),
                name
            )
        })?;
        Ok(Some(text.trim()).filter(|text| !text.is_empty()))
    };
    let say = |error: &dyn Localize| error.message();
    let rep = cell("rep")?.map(Rep::parse).transpose();
    let ibip = cell("ibip")?.map(Ibip::parse).transpose();
    let names = Names::new(
        rep.map_err(|error| say(&error))?,
        ibip.map_err(|error| say(&error))?,
    );
    let language = cell("language")?.map(Language::parse).transpose();
    let aliases = cell("alias")?.unwrap_or_default().split_whitespace();
    let aliases = aliases.map(AliasPair::parse).collect::<Result<_, _>>();
    Ok(Row {
        line,
        names: names.ok_or_else(|| message!("it names no item; give its rep or its IBIp"))?,
        relations: relations(cell("relations")?.unwrap_or_default())?,
        language: language.map_err(|error| say(&error))?,
        target: cell("target")?.map(target).transpose()?,
        aliases: aliases.map_err(|error| say(&error))?,
        state: cell("state")?.map(state).transpose()?,
    })
}

/// Parses `metadata=<ibi> translation(pt)=<ibi>`: names of pairs of a sidecar, without `ibi.`.
fn relations(text: &str) -> Result<Vec<(RelationKind, Names)>, Message> {
    let mut relations: Vec<(RelationKind, Names)> = Vec::new();
    let mut seen = BTreeSet::new();
    for word in text.split_whitespace() {
        let unknown = || {
            message!(
                "relation '{word}' is not one of nextedition=, metadata=, translation(LANGUAGE)=, \
                 editionof=, metadataof= and translationof= followed by an identifier",
                word = abridged(word.as_bytes())
            )
        };
        let (name, item) = word.split_once('=').ok_or_else(unknown)?;
        let kind = RelationKind::from_pair_name(&format!("ibi.{name}")).ok_or_else(unknown)?;
        let kind = kind.map_err(|error| error.message())?;
        let item = Ibi::parse(item).map_err(|error| error.message())?;
        if !seen.insert(kind) {
            return Err(message!("relation '{name}' occurs twice; remove one", name));
        }
        relations.push((kind, Names::from(item)));
    }
    Ok(relations)
}

/// Parses the path of a file as a sidecar has it: `%hh` is a byte, so that names that are not UTF-8
/// can be given.
fn target(text: &str) -> Result<Vec<u8>, Message> {
    let path = percent_decode(text);
    if stays_below(&path) {
        Ok(path)
    } else {
        Err(message!(
            "target '{text}' is not the path of a file below doc/, such as report.pdf",
            text = abridged(text.as_bytes())
        ))
    }
}

fn state(text: &str) -> Result<State, Message> {
    match text.parse() {
        Ok(state @ (State::Original | State::Copy)) => Ok(state),
        _ => Err(message!(
            "state '{text}' is neither Original nor Copy",
            text = abridged(text.as_bytes())
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "sid.inpe.br/MTC-m13@80/2005/08.10.14.18";
    const B: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05";

    #[track_caller]
    fn bad(text: &str, sentence: &str) {
        let table = parse(text.as_bytes());
        let said: Vec<String> = table.faults.iter().map(ToString::to_string).collect();
        assert_eq!(said, [sentence]);
    }

    #[test]
    fn a_row_says_what_its_cells_say() {
        let text = format!(
            "\u{feff}Language,rep,ibip,relations,target,alias,state\r\n\
             pt-BR,{A},8JMKD3MGP8W/35MMLL8,\"metadata={B}\r\n translation(en)=8JMKD3MGP8W/35MME4E\",\
             @relatório.pdf,6RPa7umaZ/UaJFT,Original\r\n\r\n,{B},,,,,\r\n"
        );
        let table = parse(text.as_bytes());
        assert_eq!(table.faults, []);
        let [first, second] = &table.rows[..] else {
            panic!("{table:?}");
        };
        assert_eq!((first.line, second.line), (2, 5));
        assert_eq!(
            first.names.to_string(),
            format!("{{rep {A} ibip 8JMKD3MGP8W/35MMLL8}}")
        );
        let relations: Vec<String> = first
            .relations
            .iter()
            .map(|(kind, names)| format!("{} {}", kind.pair_name(), names.preferred()))
            .collect();
        assert_eq!(
            relations,
            [
                format!("ibi.metadata {B}"),
                "ibi.translation(en) 8JMKD3MGP8W/35MME4E".to_owned()
            ]
        );
        assert_eq!(
            first.language.map(|language| language.to_string()),
            Some("pt-BR".to_owned())
        );
        assert_eq!(first.target.as_deref(), Some("@relatório.pdf".as_bytes()));
        assert_eq!(first.aliases[0].as_str(), "6RPa7umaZ/UaJFT");
        assert_eq!((first.state, second.state), (Some(State::Original), None));
        assert_eq!(parse(text.replace(',', ";").as_bytes()), table);
    }

    #[test]
    fn each_bad_row_has_its_line_and_a_remedy() {
        const COLUMNS: &str = "rep, ibip, relations, language, target, alias, state";
        bad(
            "",
            &format!("line 1: the table is empty; its first line names columns: {COLUMNS}"),
        );
        bad(
            "rep,titel\n",
            &format!("line 1: unknown column 'titel'; the columns are {COLUMNS}"),
        );
        bad("rep,rep\n", "line 1: column 'rep' occurs twice; remove one");
        bad(
            "language\n",
            "line 1: neither a column 'rep' nor a column 'ibip' is present; add one",
        );
        bad(
            "rep,language\nx\n",
            "line 2: it has 1 cells, and the first line 2; put a cell that has a comma in quotes",
        );
        bad(
            "rep,language\n,pt\n",
            "line 2: it names no item; give its rep or its IBIp",
        );
        bad("rep\nx/y\n", "line 2: rep 'x/y' has 2 components, not 4");
        bad(
            &format!("rep,language\n{A},portuguese\n"),
            "line 2: language 'portuguese' is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR",
        );
        bad(
            &format!("rep,relations\n{A},child={B}\n"),
            &format!(
                "line 2: relation 'child={B}' is not one of nextedition=, metadata=, translation(LANGUAGE)=, \
                 editionof=, metadataof= and translationof= followed by an identifier"
            ),
        );
        bad(
            &format!("rep,relations\n{A},metadata={B} metadata={B}\n"),
            "line 2: relation 'metadata' occurs twice; remove one",
        );
        bad(
            &format!("rep,target\n{A},../x\n"),
            "line 2: target '../x' is not the path of a file below doc/, such as report.pdf",
        );
        bad(
            &format!("rep,target\n{A},%2E%2e/x\n"),
            "line 2: target '%252E%252e/x' is not the path of a file below doc/, such as report.pdf",
        );
        bad(
            &format!("rep,state\n{A},Deleted\n"),
            "line 2: state 'Deleted' is neither Original nor Copy",
        );
        let latin = [
            format!("rep,target\n{A},").as_bytes(),
            b"relat\xf3rio.pdf\n",
        ]
        .concat();
        let table = parse(&latin);
        assert_eq!(
            table.faults[0].to_string(),
            "line 2: 'relat%F3rio.pdf' in column 'target' is not UTF-8; convert the table, as with \
             'iconv -f ISO-8859-1 -t UTF-8'"
        );
        let two = parse(format!("rep\nx\n{A}\ny\n").as_bytes());
        assert_eq!((two.rows.len(), two.faults.len()), (1, 2));
    }
}
