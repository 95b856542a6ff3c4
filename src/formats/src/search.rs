//! The query of a user, as text: words, phrases and fields.
//!
//! `rainfall creator:banon year:2005-2009 -map "sea level" hydro*`: items that have all of these words and not
//! those after `-`; a phrase has its words side by side, and `*` stands for any end of a word. A word after a field
//! is looked for there only. Case and diacritics do not count. Every text is a query or has no word: what looks
//! like a field and is not one is words.

/// A part of a description that can be searched by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchField {
    /// Titles.
    Title,
    /// Creators and contributors.
    Creator,
    /// Subjects and keywords.
    Subject,
    /// Abstracts and other descriptions.
    Abstract,
    /// The years of the dates.
    Year,
    /// Types.
    Type,
    /// Languages.
    Language,
    /// The level of the reps, such as `sid.inpe.br/mtc-m18`, or the prefix of an IBIp.
    Collection,
    /// Everything else that is described.
    Other,
    /// The text of the files.
    Text,
}

impl SearchField {
    /// All fields. The last is that of files.
    pub const ALL: [SearchField; 10] = [
        SearchField::Title,
        SearchField::Creator,
        SearchField::Subject,
        SearchField::Abstract,
        SearchField::Year,
        SearchField::Type,
        SearchField::Language,
        SearchField::Collection,
        SearchField::Other,
        SearchField::Text,
    ];

    /// The fields of a description.
    pub const DESCRIBED: &'static [SearchField] = SearchField::ALL.split_at(9).0;

    /// Its name in a query.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SearchField::Title => "title",
            SearchField::Creator => "creator",
            SearchField::Subject => "subject",
            SearchField::Abstract => "abstract",
            SearchField::Year => "year",
            SearchField::Type => "type",
            SearchField::Language => "language",
            SearchField::Collection => "collection",
            SearchField::Other => "other",
            SearchField::Text => "text",
        }
    }

    /// The field with this name, or another name that is common for it, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<SearchField> {
        let name = name.to_lowercase();
        let common = match name.as_str() {
            "author" | "contributor" => SearchField::Creator,
            "keyword" | "keywords" => SearchField::Subject,
            "description" => SearchField::Abstract,
            "date" => SearchField::Year,
            "lang" => SearchField::Language,
            "content" | "fulltext" => SearchField::Text,
            _ => {
                return SearchField::ALL
                    .into_iter()
                    .find(|field| field.name() == name);
            }
        };
        Some(common)
    }
}

/// The texts that the searches of an Archive read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Searched {
    /// Descriptions.
    #[default]
    Descriptions,
    /// The text of files, too.
    Texts,
}

impl Searched {
    /// All of them.
    pub const ALL: [Searched; 2] = [Searched::Descriptions, Searched::Texts];

    /// Its name, in `archive.ibi` and in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Searched::Descriptions => "descriptions",
            Searched::Texts => "texts",
        }
    }

    /// Returns the one that has this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Searched> {
        Searched::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// The years by which the last year of a range may be later than its first.
const MOST_YEARS: u16 = 500;

/// The number of years that the ranges of a query may have together. The index looks each of them up by itself.
const MOST_YEARS_OF_ALL: usize = 1000;

/// The number of terms of a query that count.
const MOST_TERMS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: Option<SearchField>,
    /// Words that stand side by side, or a range.
    what: What,
    is_excluded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Words(String),
    Begin(String),
    Years(u16, u16),
}

impl What {
    /// Returns the number of years that it names.
    fn years(&self) -> usize {
        match self {
            What::Words(_) | What::Begin(_) => 0,
            What::Years(first, last) => usize::from(last - first) + 1,
        }
    }
}

/// The query of a user. It has at least one word that an item must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    terms: Vec<Term>,
}

impl SearchQuery {
    /// Reads a query. None if no word is left that an item must have.
    #[must_use]
    pub fn parse(text: &str) -> Option<SearchQuery> {
        let mut query = SearchQuery { terms: Vec::new() };
        let mut rest = text.trim_start();
        while !rest.is_empty() && query.terms.len() < MOST_TERMS {
            let (term, after) = next_term(rest);
            if let Some(term) = term {
                query.add(term);
            }
            rest = after.trim_start();
        }
        let is_any = query.terms.iter().any(|term| !term.is_excluded);
        is_any.then_some(query)
    }

    /// The query of a text and of values of fields.
    ///
    /// # Errors
    /// The first of them in which no word is left that an item must have.
    pub fn of_words<'a>(
        text: &'a str,
        fields: impl IntoIterator<Item = (SearchField, &'a str)>,
    ) -> Result<SearchQuery, &'a str> {
        let mut wanted = match text {
            "" => None,
            text => Some(SearchQuery::parse(text).ok_or(text)?),
        };
        for (field, value) in fields {
            let more = SearchQuery::of_field(field, value).ok_or(value)?;
            wanted = Some(match wanted {
                Some(known) => known.and(more),
                None => more,
            });
        }
        wanted.ok_or("")
    }

    /// Adds a term, if it is a new one and the query is not too long with it.
    fn add(&mut self, term: Term) {
        let years: usize = self.terms.iter().map(|term| term.what.years()).sum();
        if self.terms.len() < MOST_TERMS
            && years + term.what.years() <= MOST_YEARS_OF_ALL
            && !self.terms.contains(&term)
        {
            self.terms.push(term);
        }
    }

    /// This query with the terms of another one.
    #[must_use]
    pub fn and(mut self, other: SearchQuery) -> SearchQuery {
        for term in other.terms {
            self.add(term);
        }
        self
    }

    /// A query for a value of a field.
    #[must_use]
    pub fn of_field(field: SearchField, value: &str) -> Option<SearchQuery> {
        let what = what_of(value, field == SearchField::Year)?;
        let term = Term {
            field: Some(field),
            what,
            is_excluded: false,
        };
        Some(SearchQuery { terms: vec![term] })
    }

    /// Whether a term is looked for in the text of files only.
    #[must_use]
    pub fn is_of_texts(&self) -> bool {
        let fields = self.terms.iter().map(|term| term.field);
        fields
            .into_iter()
            .any(|field| field == Some(SearchField::Text))
    }

    /// The expression for the full-text index (sqlite.org/fts5.html, section 3), whose columns are the fields.
    #[must_use]
    pub fn expression(&self) -> String {
        let all = |is_excluded: bool, between: &str| {
            let terms = self
                .terms
                .iter()
                .filter(|term| term.is_excluded == is_excluded);
            terms
                .map(Term::expression)
                .collect::<Vec<_>>()
                .join(between)
        };
        let wanted = all(false, " AND ");
        let excluded = all(true, " OR ");
        if excluded.is_empty() {
            wanted
        } else {
            format!("({wanted}) NOT ({excluded})")
        }
    }
}

impl Term {
    fn expression(&self) -> String {
        let what = match &self.what {
            What::Words(words) => quoted(words),
            What::Begin(words) => format!("{} *", quoted(words)),
            What::Years(first, last) => {
                let years: Vec<String> =
                    (*first..=*last).map(|year| format!("\"{year}\"")).collect();
                format!("({})", years.join(" OR "))
            }
        };
        match self.field {
            Some(field) => format!("{} : {what}", field.name()),
            // A long text has many words that its description does not have.
            None if self.is_excluded => {
                let fields: Vec<&str> = SearchField::DESCRIBED
                    .iter()
                    .map(|field| field.name())
                    .collect();
                format!("{{{}}} : {what}", fields.join(" "))
            }
            None => what,
        }
    }
}

/// A string of the full-text index. Nothing in it has a meaning.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace(['"', '\0'], " "))
}

/// Returns what stands between blanks, or between quotation marks; None if there is no word in it.
fn next_term(text: &str) -> (Option<Term>, &str) {
    let (is_excluded, text) = match text.strip_prefix('-') {
        Some(after) => (true, after),
        None => (false, text),
    };
    let end_of_name = text.find(|sign: char| sign == ':' || sign == '"' || sign.is_whitespace());
    let named = end_of_name
        .filter(|at| text[*at..].starts_with(':'))
        .and_then(|at| {
            let field = SearchField::from_name(&text[..at])?;
            let value = &text[at + 1..];
            let is_value = value
                .chars()
                .next()
                .is_some_and(|sign| !sign.is_whitespace());
            is_value.then_some((field, value))
        });
    let (field, text) = match named {
        Some((field, value)) => (Some(field), value),
        None => (None, text),
    };
    let (value, after) = match text.strip_prefix('"') {
        Some(phrase) => match phrase.find('"') {
            Some(end) => (&phrase[..end], &phrase[end + 1..]),
            None => (phrase, ""),
        },
        None => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            text.split_at(end)
        }
    };
    let term = what_of(value, field == Some(SearchField::Year)).map(|what| Term {
        field,
        what,
        is_excluded,
    });
    (term, after)
}

fn what_of(value: &str, is_year: bool) -> Option<What> {
    if is_year && let Some((first, last)) = value.split_once('-') {
        let year = |text: &str| text.parse::<u16>().ok().filter(|year| *year < 10_000);
        if let (Some(first), Some(last)) = (year(first), year(last))
            && first <= last
            && last - first <= MOST_YEARS
        {
            return Some(What::Years(first, last));
        }
    }
    if !value.chars().any(char::is_alphanumeric) {
        return None;
    }
    Some(match value.strip_suffix('*') {
        Some(begin) => What::Begin(begin.to_owned()),
        None => What::Words(value.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_become_expressions() {
        for (text, expected) in [
            ("rainfall", Some("\"rainfall\"")),
            ("  a  b ", Some("\"a\" AND \"b\"")),
            ("creator:banon", Some("creator : \"banon\"")),
            (
                "AUTHOR:\"G J F Banon\" x",
                Some("creator : \"G J F Banon\" AND \"x\""),
            ),
            (
                "tides -map",
                Some(
                    "(\"tides\") NOT ({title creator subject abstract year type language collection other} : \"map\")",
                ),
            ),
            ("a -text:b", Some("(\"a\") NOT (text : \"b\")")),
            (
                "tides -year:2009 -\"a b\"",
                Some(
                    "(\"tides\") NOT (year : \"2009\" OR {title creator subject abstract year type language collection other} : \"a b\")",
                ),
            ),
            ("year:2008-2009", Some("year : (\"2008\" OR \"2009\")")),
            ("year:2009-2008", Some("year : \"2009-2008\"")),
            ("hydro*", Some("\"hydro\" *")),
            ("http://x.example/y", Some("\"http://x.example/y\"")),
            ("Tides: a study", Some("\"Tides:\" AND \"a\" AND \"study\"")),
            (
                "a\" OR b:c) NEAR(",
                Some("\"a \" AND \"OR\" AND \"b:c)\" AND \"NEAR(\""),
            ),
            ("\"open phrase", Some("\"open phrase\"")),
            ("title: x", Some("\"title:\" AND \"x\"")),
            ("-x", None),
            ("", None),
            ("-- : \" *", None),
        ] {
            let query = SearchQuery::parse(text);
            assert_eq!(
                query.map(|query| query.expression()).as_deref(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn queries_are_bounded() {
        let many: String = (0..10_000).map(|number| format!("a{number} ")).collect();
        let query = SearchQuery::parse(&many).expect("a query");
        assert_eq!(query.terms.len(), MOST_TERMS);
        let other = SearchQuery::parse("b").expect("a query");
        assert_eq!(query.and(other).terms.len(), MOST_TERMS);
    }

    #[test]
    fn a_term_counts_once() {
        let once = SearchQuery::parse("year:1000-1500 a -b").expect("a query");
        let often = "year:1000-1500 a -b ".repeat(9);
        assert_eq!(SearchQuery::parse(&often).as_ref(), Some(&once));
        assert_eq!(once.clone().and(once.clone()), once);
    }

    #[test]
    fn few_years_are_looked_up() {
        for sign in ["", "-"] {
            let ranges = (1000..1064).map(|year| format!("{sign}year:{year}-{} ", year + 500));
            let query = SearchQuery::parse(&format!("a {}", ranges.collect::<String>()));
            let expression = query.expect("a query").expression();
            let years = expression.matches('"').count() / 2 - 1;
            assert!(
                (500..=MOST_YEARS_OF_ALL).contains(&years),
                "{years} years: {expression}"
            );
        }
        // Ranges as users write them all count.
        let text = "year:1800-2000 year:1950-2026 -year:1990-1999";
        assert_eq!(SearchQuery::parse(text).expect("a query").terms.len(), 3);
    }
}
