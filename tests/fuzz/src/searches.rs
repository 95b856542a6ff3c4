//! What a user searches for: in the mount, on a page, in a command.

use ibifs::formats::search::{SearchField, SearchQuery};
use ibifs::outside::fuse::texts::query as query_below_find;
use rusqlite::Connection;

use super::text;

thread_local! {
    static INDEX: Connection = index();
}

/// Every query is an expression that a full-text index reads, and asking for the same twice finds the same.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    assert_eq!(
        query_below_find(&text.replace('/', " ")),
        SearchQuery::parse(text.replace('/', " ").as_str())
    );
    for query in [SearchQuery::parse(text), query_below_find(text)]
        .into_iter()
        .chain(SearchField::ALL.map(|field| SearchQuery::of_field(field, text)))
        .flatten()
    {
        let found = found(&query);
        let expression = query.expression();
        assert!(
            expression.len() <= 16 * 1024 + 2 * text.len(),
            "{} bytes",
            expression.len()
        );
        // More terms than count are left out.
        if text.split_whitespace().count() <= 16 {
            assert_eq!(
                self::found(&query.clone().and(query)),
                found,
                "{expression}"
            );
        }
    }
}

fn found(query: &SearchQuery) -> i64 {
    INDEX.with(|index| {
        let count = "SELECT count(*) FROM words WHERE words MATCH ?1";
        let found = index.query_row(count, [query.expression()], |row| row.get(0));
        found.unwrap_or_else(|error| panic!("{error}: {}", query.expression()))
    })
}

/// An index as those of a store, with two items.
fn index() -> Connection {
    let index = Connection::open_in_memory().expect("a database");
    let columns = SearchField::ALL.map(SearchField::name).join(", ");
    let made = index.execute_batch(&format!(
        "CREATE VIRTUAL TABLE words USING fts5 (
            {columns}, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
        );
        INSERT INTO words (title, creator, year, text) VALUES ('a sea level', 'Banon', '2009', 'tide b');
        INSERT INTO words (title, subject, language) VALUES ('hydro map', 'x', 'pt');"
    ));
    made.expect("a table");
    index
}
