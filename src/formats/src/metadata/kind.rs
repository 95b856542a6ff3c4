//! Kinds of bibliographic records, and the words for them in each format that is read or written.

use super::{DublinCore, Element};

/// The kind of thing that a record describes: an article, a thesis, a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// An article of a journal.
    Article,
    /// A book.
    Book,
    /// A chapter of a book.
    Chapter,
    /// A paper of a conference.
    Paper,
    /// The proceedings of a conference.
    Proceedings,
    /// A doctoral thesis.
    Thesis,
    /// A master's thesis.
    MastersThesis,
    /// A report.
    Report,
    /// A manual.
    Manual,
    /// A text that is not published.
    Unpublished,
    /// A data set.
    Dataset,
    /// A program.
    Software,
    /// A picture.
    Image,
    /// A map.
    Map,
    /// A recording of sound.
    Sound,
    /// A film.
    MovingImage,
    /// A page of the web.
    WebPage,
    /// A set of files, of which no more is known.
    Collection,
    /// Anything else.
    Other,
}

/// The words for a kind in the formats.
struct Words {
    kind: RecordKind,
    bibtex: &'static str,
    refer: &'static str,
    csl: &'static str,
    cff: &'static str,
    datacite: &'static str,
    schema_org: &'static str,
    dcmi: &'static str,
}

macro_rules! words {
    ($($kind:ident $bibtex:literal $refer:literal $csl:literal $cff:literal $datacite:literal $schema_org:literal $dcmi:literal)*) => {
        &[$(Words {
            kind: RecordKind::$kind,
            bibtex: $bibtex,
            refer: $refer,
            csl: $csl,
            cff: $cff,
            datacite: $datacite,
            schema_org: $schema_org,
            dcmi: $dcmi,
        }),*]
    };
}

/// The types of BibTeX and biblatex, EndNote, CSL 1.0.2, references in CFF 1.2, DataCite 4 (resourceTypeGeneral),
/// schema.org, and the DCMI type vocabulary. A "collection" of CSL is one of papers in an archive, not any set of files.
#[rustfmt::skip]
const WORDS: &[Words] = words! {
    Article       "article"       "Journal Article"        "article-journal"  "article"          "JournalArticle"       "ScholarlyArticle"   "Text"
    Book          "book"          "Book"                   "book"             "book"             "Book"                 "Book"               "Text"
    Chapter       "incollection"  "Book Section"           "chapter"          "generic"          "BookChapter"          "Chapter"            "Text"
    Paper         "inproceedings" "Conference Proceedings" "paper-conference" "conference-paper" "ConferencePaper"      "ScholarlyArticle"   "Text"
    Proceedings   "proceedings"   "Edited Book"            "book"             "proceedings"      "ConferenceProceeding" "Book"               "Text"
    Thesis        "phdthesis"     "Thesis"                 "thesis"           "thesis"           "Dissertation"         "Thesis"             "Text"
    MastersThesis "mastersthesis" "Thesis"                 "thesis"           "thesis"           "Dissertation"         "Thesis"             "Text"
    Report        "techreport"    "Report"                 "report"           "report"           "Report"               "Report"             "Text"
    Manual        "manual"        "Standard"               "report"           "manual"           "Text"                 "TechArticle"        "Text"
    Unpublished   "unpublished"   "Unpublished Work"       "manuscript"       "unpublished"      "Text"                 "CreativeWork"       "Text"
    Dataset       "dataset"       "Dataset"                "dataset"          "data"             "Dataset"              "Dataset"            "Dataset"
    Software      "software"      "Computer Program"       "software"         "software"         "Software"             "SoftwareSourceCode" "Software"
    Image         "image"         "Figure"                 "graphic"          "art"              "Image"                "ImageObject"        "Image"
    Map           "misc"          "Map"                    "map"              "map"              "Image"                "Map"                "Image"
    Sound         "audio"         "Music"                  "song"             "sound-recording"  "Sound"                "AudioObject"        "Sound"
    MovingImage   "video"         "Film or Broadcast"      "motion_picture"   "video"            "Audiovisual"          "VideoObject"        "MovingImage"
    WebPage       "online"        "Web Page"               "webpage"          "website"          "Text"                 "WebPage"            "Text"
    Collection    "misc"          "Generic"                "document"         "generic"          "Collection"           "Collection"         "Collection"
    Other         "misc"          "Generic"                "document"         "generic"          "Other"                "CreativeWork"       "Text"
};

/// Other words that are read.
#[rustfmt::skip]
const READ: &[(&str, RecordKind)] = &[
    // BibTeX and biblatex.
    ("booklet", RecordKind::Book), ("collection", RecordKind::Book), ("inbook", RecordKind::Chapter),
    ("conference", RecordKind::Paper), ("periodical", RecordKind::Book), ("report", RecordKind::Report),
    ("thesis", RecordKind::Thesis), ("artwork", RecordKind::Image), ("music", RecordKind::Sound),
    ("movie", RecordKind::MovingImage), ("electronic", RecordKind::WebPage),
    // EndNote.
    ("magazine article", RecordKind::Article), ("newspaper article", RecordKind::Article),
    ("conference paper", RecordKind::Paper), ("online database", RecordKind::Dataset),
    ("chart or table", RecordKind::Image), ("audiovisual material", RecordKind::MovingImage),
    ("electronic source", RecordKind::WebPage), ("electronic book", RecordKind::Book),
    ("electronic article", RecordKind::Article), ("manuscript", RecordKind::Unpublished),
    // Dublin Core, as people write it.
    ("image", RecordKind::Image), ("stillimage", RecordKind::Image), ("sound", RecordKind::Sound),
    ("movingimage", RecordKind::MovingImage), ("text", RecordKind::Other), ("dissertation", RecordKind::MastersThesis),
    ("tese", RecordKind::Thesis), ("dissertação", RecordKind::MastersThesis), ("artigo", RecordKind::Article),
    ("livro", RecordKind::Book), ("relatório", RecordKind::Report), ("mapa", RecordKind::Map),
];

impl RecordKind {
    fn words(self) -> Option<&'static Words> {
        WORDS.iter().find(|words| words.kind == self)
    }

    /// The type of an entry of BibTeX or biblatex.
    #[must_use]
    pub fn bibtex(self) -> &'static str {
        self.words().map_or("misc", |words| words.bibtex)
    }

    /// The reference type of EndNote, the tag `%0` of refer.
    #[must_use]
    pub fn refer(self) -> &'static str {
        self.words().map_or("Generic", |words| words.refer)
    }

    /// The type of CSL-JSON.
    #[must_use]
    pub fn csl(self) -> &'static str {
        self.words().map_or("document", |words| words.csl)
    }

    /// The type of a reference in CITATION.cff.
    #[must_use]
    pub fn cff(self) -> &'static str {
        self.words().map_or("generic", |words| words.cff)
    }

    /// The word of EndNote, or of BibTeX where that has more kinds, which is read as this kind.
    #[must_use]
    pub fn genre(self) -> &'static str {
        let is_this = |word: &&str| RecordKind::from_word(word) == Some(self);
        Some(self.refer()).filter(is_this).unwrap_or(self.bibtex())
    }

    /// The kind of a thesis for the degree that a text names; other kinds as they are.
    pub(super) fn of_degree(self, text: &str) -> RecordKind {
        let text = text.to_lowercase();
        let masters = ["master", "mestrado", "dissertação", "m.sc"];
        match self {
            RecordKind::Thesis if masters.iter().any(|word| text.contains(word)) => {
                RecordKind::MastersThesis
            }
            kind => kind,
        }
    }

    /// The general resource type of DataCite.
    #[must_use]
    pub fn datacite(self) -> &'static str {
        self.words().map_or("Other", |words| words.datacite)
    }

    /// The class of schema.org.
    #[must_use]
    pub fn schema_org(self) -> &'static str {
        self.words()
            .map_or("CreativeWork", |words| words.schema_org)
    }

    /// The term of the DCMI type vocabulary.
    #[must_use]
    pub fn dcmi(self) -> &'static str {
        self.words().map_or("Text", |words| words.dcmi)
    }

    /// The kind that a type of CSL-JSON means.
    pub(super) fn from_csl(word: &str) -> Option<RecordKind> {
        let known = WORDS
            .iter()
            .find(|words| words.csl == word && words.kind != RecordKind::Collection);
        let known = known.map(|words| words.kind);
        known.or(match word {
            "article" | "article-magazine" | "article-newspaper" | "review" | "review-book" => {
                Some(RecordKind::Article)
            }
            "entry" | "entry-dictionary" | "entry-encyclopedia" => Some(RecordKind::Chapter),
            "post" | "post-weblog" => Some(RecordKind::WebPage),
            "figure" => Some(RecordKind::Image),
            "broadcast" => Some(RecordKind::MovingImage),
            "collection" => Some(RecordKind::Collection),
            _ => None,
        })
    }

    /// The kind that the type of a reference in CITATION.cff means.
    pub(super) fn from_cff(word: &str) -> Option<RecordKind> {
        let is_its = |words: &&Words| words.cff == word && word != "generic";
        let known = WORDS.iter().find(is_its);
        known.map(|words| words.kind).or(match word {
            "magazine-article" | "newspaper-article" => Some(RecordKind::Article),
            "database" => Some(RecordKind::Dataset),
            "music" => Some(RecordKind::Sound),
            "audiovisual" | "film-broadcast" => Some(RecordKind::MovingImage),
            _ if word.starts_with("software-") => Some(RecordKind::Software),
            _ => None,
        })
    }

    /// The kind that a general resource type of DataCite means.
    pub(super) fn from_datacite(word: &str) -> Option<RecordKind> {
        let is_general = |words: &&Words| words.datacite == word && words.datacite != "Text";
        let known = WORDS.iter().find(is_general).map(|words| words.kind);
        known.or(match word {
            "Preprint" | "DataPaper" => Some(RecordKind::Article),
            "Film" => Some(RecordKind::MovingImage),
            "Text" => Some(RecordKind::Other),
            _ => None,
        })
    }

    /// The kind that a class of schema.org means.
    pub(super) fn from_schema_org(word: &str) -> Option<RecordKind> {
        let word = word.rsplit(['/', ':']).next().unwrap_or_default();
        let known = WORDS.iter().find(|words| words.schema_org == word);
        known.map(|words| words.kind).or(match word {
            "Article" => Some(RecordKind::Article),
            "SoftwareApplication" => Some(RecordKind::Software),
            "Photograph" | "Painting" => Some(RecordKind::Image),
            "Movie" | "Clip" => Some(RecordKind::MovingImage),
            "DataCatalog" | "DataDownload" => Some(RecordKind::Dataset),
            _ => None,
        })
    }

    /// The kind that a word of one of the formats means, in any case.
    #[must_use]
    pub fn from_word(word: &str) -> Option<RecordKind> {
        let lower = word.trim().to_lowercase();
        if lower.is_empty() {
            return None;
        }
        let is = |known: &str| known.eq_ignore_ascii_case(&lower);
        let table = WORDS
            .iter()
            .find(|words| is(words.bibtex) || is(words.refer));
        let read = || READ.iter().find(|(known, _)| *known == lower);
        match table {
            // A record of type misc or generic is not known to be a map.
            Some(_) if is("misc") || is("generic") => Some(RecordKind::Other),
            Some(words) => Some(words.kind),
            None => read().map(|(_, kind)| *kind),
        }
    }

    /// The kind that the types of a Dublin Core record say, the most specific of them.
    #[must_use]
    pub fn of_types(core: &DublinCore) -> Option<RecordKind> {
        let mut found = None;
        for value in core.values(Element::Type) {
            let is_collection = value.eq_ignore_ascii_case("collection");
            let kind = if is_collection {
                Some(RecordKind::Collection)
            } else {
                RecordKind::from_word(value)
            };
            let kind = kind.or_else(|| {
                // "Dissertação (Mestrado em Meteorologia)"
                RecordKind::from_word(value.split([' ', '(', ',']).next().unwrap_or_default())
            });
            match kind {
                None => {}
                Some(RecordKind::Other | RecordKind::Collection) => found = found.or(kind),
                Some(_) => return kind,
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case() {
        for words in WORDS {
            let bibtex = RecordKind::from_word(words.bibtex);
            assert_eq!(bibtex.map(RecordKind::bibtex), Some(words.bibtex));
            assert_eq!(words.kind.csl(), words.csl);
            let genre = RecordKind::from_word(words.kind.genre());
            assert!(
                genre == Some(words.kind) || words.bibtex == "misc",
                "{genre:?}"
            );
        }
        for (word, kind) in [
            ("InProceedings", Some(RecordKind::Paper)),
            ("journal article", Some(RecordKind::Article)),
            ("Map", Some(RecordKind::Map)),
            ("misc", Some(RecordKind::Other)),
            ("Tese", Some(RecordKind::Thesis)),
            ("RELATÓRIO", Some(RecordKind::Report)),
            ("", None),
            ("poem", None),
        ] {
            assert_eq!(RecordKind::from_word(word), kind, "{word}");
        }
    }

    #[test]
    fn the_most_specific_type_counts() {
        for (types, kind) in [
            (
                &["Text", "Dissertação (Mestrado)"][..],
                Some(RecordKind::MastersThesis),
            ),
            (&["Text"], Some(RecordKind::Other)),
            (&["poem", "Dataset"], Some(RecordKind::Dataset)),
            (&[], None),
        ] {
            let mut core = DublinCore::default();
            for value in types {
                core.push(Element::Type, *value);
            }
            assert_eq!(RecordKind::of_types(&core), kind, "{types:?}");
        }
    }
}
