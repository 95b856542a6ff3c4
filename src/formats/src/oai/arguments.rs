//! Parses the arguments of a request.

use super::date::Date;
use super::fault::{OaiError, OaiErrorCode};
use super::token::ListPosition;
use super::{FORMAT, OaiFormat, collection_in};
use crate::query::FormFields;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OaiRequest {
    /// The description of the repository.
    Identify,
    /// The formats of one record, or of all.
    ListMetadataFormats {
        /// The record.
        identifier: Option<String>,
    },
    /// The sets.
    ListSets,
    /// One record.
    GetRecord {
        /// Its identifier.
        identifier: String,
        /// The format in which it is wanted.
        format: OaiFormat,
    },
    /// The headers of records.
    ListIdentifiers(ListSelection),
    /// Records.
    ListRecords(ListSelection),
}

/// Selects the records of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSelection {
    /// The first second, since 1970.
    pub from: Option<i64>,
    /// The last second, since 1970.
    pub until: Option<i64>,
    /// The position after which the list continues.
    pub after: Option<ListPosition>,
    /// The format of the records.
    pub format: OaiFormat,
    /// The collection to which the list is limited; one that no name has matches no record.
    pub collection: Option<String>,
}

impl Default for ListSelection {
    fn default() -> ListSelection {
        ListSelection {
            from: None,
            until: None,
            after: None,
            format: FORMAT,
            collection: None,
        }
    }
}

/// A parsed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OaiArguments {
    /// The arguments to repeat in the answer; none where the protocol omits them.
    pub arguments: Vec<(String, String)>,
    /// The request, or its errors.
    pub request: Result<OaiRequest, Vec<OaiError>>,
}

/// A verb's required arguments, its optional ones, and whether it accepts a resumption token.
type VerbForm = (&'static [&'static str], &'static [&'static str], bool);

const LIST: VerbForm = (&["metadataPrefix"], &["from", "until", "set"], true);

fn form(verb: &str) -> Option<VerbForm> {
    Some(match verb {
        "Identify" => (&[], &[], false),
        "ListMetadataFormats" => (&[], &["identifier"], false),
        "ListSets" => (&[], &[], true),
        "GetRecord" => (&["identifier", "metadataPrefix"], &[], false),
        "ListIdentifiers" | "ListRecords" => LIST,
        _ => return None,
    })
}

const TOKEN: &str = "resumptionToken";

impl OaiArguments {
    /// Parses the arguments of a request.
    #[must_use]
    pub fn read(fields: &FormFields) -> OaiArguments {
        let arguments = fields.iter();
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let arguments: Vec<(String, String)> = arguments.collect();
        let request = read(&arguments);
        let is_repeated = match &request {
            Ok(_) => true,
            Err(faults) => faults.iter().all(|fault| {
                ![OaiErrorCode::BadVerb, OaiErrorCode::BadArgument].contains(&fault.code)
            }),
        };
        let arguments = arguments.into_iter();
        let is_told = |(name, value): &(String, String)| is_repeated && is_attribute(name, value);
        OaiArguments {
            arguments: arguments.filter(is_told).collect(),
            request,
        }
    }

    /// A request whose arguments cannot be parsed at all.
    #[must_use]
    pub fn unreadable(sentence: String) -> OaiArguments {
        OaiArguments {
            arguments: Vec::new(),
            request: Err(vec![OaiError::new(OaiErrorCode::BadArgument, sentence)]),
        }
    }
}

fn read(arguments: &[(String, String)]) -> Result<OaiRequest, Vec<OaiError>> {
    let of = |name: &str| {
        let of_name = arguments.iter().filter(|(known, _)| known == name);
        of_name.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let bad_verb = |sentence: String| Err(vec![OaiError::new(OaiErrorCode::BadVerb, sentence)]);
    let verb = match of("verb")[..] {
        [verb] => verb,
        [] => return bad_verb("the request has no verb".to_owned()),
        _ => return bad_verb("the request has more than one verb".to_owned()),
    };
    let Some(form) = form(verb) else {
        return bad_verb(format!(
            "'{verb}' is not one of Identify, ListMetadataFormats, ListSets, GetRecord, \
             ListIdentifiers and ListRecords"
        ));
    };
    let faults = misfits(arguments, verb, form);
    if !faults.is_empty() {
        return Err(faults);
    }
    let one = |name: &str| of(name).first().map(|value| (*value).to_owned());
    if let Some(token) = one(TOKEN) {
        let position = ListPosition::from_token(&token);
        let listed = position.map(|position| ListSelection {
            from: None,
            until: position.until,
            format: position.format,
            collection: position.collection.clone(),
            after: Some(position),
        });
        return match (verb, listed) {
            ("ListIdentifiers", Some(listed)) => Ok(OaiRequest::ListIdentifiers(listed)),
            ("ListRecords", Some(listed)) => Ok(OaiRequest::ListRecords(listed)),
            _ => Err(vec![OaiError::new(
                OaiErrorCode::BadResumptionToken,
                "the resumptionToken is not one of this service; start the list again",
            )]),
        };
    }
    let mut faults = Vec::new();
    let prefix = one("metadataPrefix");
    let format = prefix.as_deref().and_then(OaiFormat::of_prefix);
    if let Some(prefix) = prefix.filter(|_| format.is_none()) {
        let sentence = format!(
            "records are available in the formats oai_dc, datacite and oai_openaire, not in '{prefix}'"
        );
        faults.push(OaiError::new(
            OaiErrorCode::CannotDisseminateFormat,
            sentence,
        ));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let identifier = one("identifier");
    let date = |name: &str| one(name).and_then(|text| Date::parse(&text));
    let listed = || ListSelection {
        from: date("from").map(Date::first_second),
        until: date("until").map(Date::last_second),
        after: None,
        format: format.unwrap_or(FORMAT),
        // A set that cannot be one of ours is empty.
        collection: one("set").map(|set| collection_in(&set).unwrap_or_default()),
    };
    Ok(match verb {
        "Identify" => OaiRequest::Identify,
        "ListMetadataFormats" => OaiRequest::ListMetadataFormats { identifier },
        "GetRecord" => OaiRequest::GetRecord {
            identifier: identifier.unwrap_or_default(),
            format: format.unwrap_or(FORMAT),
        },
        "ListIdentifiers" => OaiRequest::ListIdentifiers(listed()),
        "ListRecords" => OaiRequest::ListRecords(listed()),
        _ => OaiRequest::ListSets,
    })
}

/// The arguments of a verb that are missing, excessive or malformed.
fn misfits(arguments: &[(String, String)], verb: &str, form: VerbForm) -> Vec<OaiError> {
    let (needed, possible, has_token) = form;
    let mut sentences = Vec::new();
    for (at, (name, value)) in arguments.iter().enumerate() {
        let is_known = name == "verb"
            || needed.contains(&name.as_str())
            || possible.contains(&name.as_str())
            || (has_token && name == TOKEN);
        let is_again = |earlier: &&(String, String)| earlier.0 == *name;
        let earlier = arguments.get(..at).unwrap_or_default();
        if !is_known {
            sentences.push(format!("{verb} has no argument '{name}'"));
        } else if earlier.iter().any(|argument| is_again(&argument)) {
            sentences.push(format!("'{name}' is given more than once"));
        } else if !is_of_form(name, value) {
            sentences.push(format!("'{value}' is not a value of {name}"));
        }
    }
    let value_of = |wanted: &str| {
        let found = arguments.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    if value_of(TOKEN).is_some() {
        if arguments.len() > 2 {
            sentences.push(format!(
                "{TOKEN} is the only argument that is allowed with the verb"
            ));
        }
    } else {
        for name in needed.iter().filter(|name| value_of(name).is_none()) {
            sentences.push(format!("{verb} needs {name}"));
        }
    }
    let date = |name: &str| value_of(name).and_then(Date::parse);
    if let (Some(from), Some(until)) = (date("from"), date("until")) {
        if !from.is_as_fine_as(until) {
            sentences.push("from and until must both be days, or both be seconds".to_owned());
        } else if from.first_second() > until.last_second() {
            sentences.push("from is later than until".to_owned());
        }
    }
    let faults = sentences.into_iter();
    faults
        .map(|sentence| OaiError::new(OaiErrorCode::BadArgument, sentence))
        .collect()
}

fn is_made_of(value: &str, more: &[u8]) -> bool {
    let mut bytes = value.bytes();
    !value.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
}

/// Whether an argument may be repeated in an answer. A request may have any text as identifier, but the
/// schema accepts only a URI.
fn is_attribute(name: &str, value: &str) -> bool {
    let rest = value.strip_prefix("oai:").unwrap_or_default();
    name != "identifier" || (is_made_of(rest, b"-_.!~*'();/?:@&=+$,") && !rest.starts_with('/'))
}

/// Whether a value has the form that the protocol's schema requires for its argument.
fn is_of_form(name: &str, value: &str) -> bool {
    match name {
        "from" | "until" => Date::parse(value).is_some(),
        "metadataPrefix" => is_made_of(value, b"-_.!~*'()"),
        "set" => is_made_of(value, b"-_.!~*'():") && !value.split(':').any(str::is_empty),
        "identifier" => !value.is_empty(),
        TOKEN => !value.contains(|character: char| {
            character.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&character)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> OaiArguments {
        OaiArguments::read(&FormFields::parse(text).expect(text))
    }

    #[track_caller]
    fn good(text: &str, expected: OaiRequest) {
        let asked = asked(text);
        assert_eq!(asked.request, Ok(expected), "{text}");
        assert!(!asked.arguments.is_empty());
    }

    #[track_caller]
    fn bad(text: &str, expected: &[&str]) {
        let asked = asked(text);
        let faults = asked.request.expect_err(text);
        let shown: Vec<String> = faults
            .iter()
            .map(|fault| format!("{}: {}", fault.code.as_str(), fault.sentence))
            .collect();
        assert_eq!(shown, expected, "{text}");
        let has_no_arguments = expected
            .iter()
            .any(|text| text.starts_with("badVerb") || text.starts_with("badArgument"));
        assert_eq!(asked.arguments.is_empty(), has_no_arguments, "{text}");
    }

    #[test]
    fn requests_are_read() {
        good("verb=Identify", OaiRequest::Identify);
        good(
            "verb=ListMetadataFormats",
            OaiRequest::ListMetadataFormats { identifier: None },
        );
        good(
            "identifier=oai%3Aa.b%3Ax/y&verb=GetRecord&metadataPrefix=oai_dc",
            OaiRequest::GetRecord {
                identifier: "oai:a.b:x/y".to_owned(),
                format: FORMAT,
            },
        );
        good(
            "identifier=oai%3Aa.b%3Ax/y&verb=GetRecord&metadataPrefix=datacite",
            OaiRequest::GetRecord {
                identifier: "oai:a.b:x/y".to_owned(),
                format: OaiFormat::Datacite,
            },
        );
        good(
            "verb=ListIdentifiers&metadataPrefix=oai_dc&from=1970-01-01&until=1970-01-01",
            OaiRequest::ListIdentifiers(ListSelection {
                from: Some(0),
                until: Some(86_399),
                after: None,
                format: FORMAT,
                collection: None,
            }),
        );
        good(
            "verb=ListRecords&metadataPrefix=oai_dc&until=1970-01-01T00:00:09Z",
            OaiRequest::ListRecords(ListSelection {
                from: None,
                until: Some(9),
                after: None,
                format: FORMAT,
                collection: None,
            }),
        );
        let position = ListPosition {
            datestamp: 5,
            name: "8JMKD3MGP8W/34PGRBS".to_owned(),
            until: Some(9),
            format: FORMAT,
            collection: None,
            listed: 100,
            size: 0,
        };
        good(
            "verb=ListRecords&resumptionToken=9%2C5%2C8JMKD3MGP8W/34PGRBS,100,0",
            OaiRequest::ListRecords(ListSelection {
                from: None,
                until: Some(9),
                after: Some(position),
                format: FORMAT,
                collection: None,
            }),
        );
    }

    #[test]
    fn what_is_no_uri_is_not_repeated() {
        for (value, is_repeated) in [
            ("oai:a.b:x/y@80", true),
            ("oai:a.b:x%25", false),
            ("oai://a.b", false),
            ("oai:", false),
            ("::", false),
            ("x%01", false),
        ] {
            let asked = asked(&format!(
                "verb=GetRecord&metadataPrefix=oai_dc&identifier={value}"
            ));
            assert!(asked.request.is_ok(), "{value}");
            assert_eq!(
                asked.arguments.len(),
                2 + usize::from(is_repeated),
                "{value}"
            );
        }
    }

    #[test]
    fn verbs_are_refused() {
        bad("", &["badVerb: the request has no verb"]);
        bad(
            "verb=Identify&verb=Identify",
            &["badVerb: the request has more than one verb"],
        );
        let none = "is not one of Identify, ListMetadataFormats, ListSets, GetRecord, ListIdentifiers \
             and ListRecords";
        bad("verb=", &[&format!("badVerb: '' {none}")]);
        bad("verb=identify", &[&format!("badVerb: 'identify' {none}")]);
    }

    #[test]
    fn arguments_are_refused() {
        bad(
            "verb=Identify&a=1&a=1",
            &[
                "badArgument: Identify has no argument 'a'",
                "badArgument: Identify has no argument 'a'",
            ],
        );
        bad(
            "verb=GetRecord",
            &[
                "badArgument: GetRecord needs identifier",
                "badArgument: GetRecord needs metadataPrefix",
            ],
        );
        bad(
            "verb=GetRecord&identifier=&metadataPrefix=",
            &[
                "badArgument: '' is not a value of identifier",
                "badArgument: '' is not a value of metadataPrefix",
            ],
        );
        bad(
            "verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc",
            &["badArgument: 'metadataPrefix' is given more than once"],
        );
        bad(
            "verb=ListRecords&metadataPrefix=oai_dc&from=1970&until=1970-01-01T00:00Z",
            &[
                "badArgument: '1970' is not a value of from",
                "badArgument: '1970-01-01T00:00Z' is not a value of until",
            ],
        );
        bad(
            "verb=ListRecords&metadataPrefix=oai_dc&from=1970-01-01&until=1970-01-01T00:00:00Z",
            &["badArgument: from and until must both be days, or both be seconds"],
        );
        bad(
            "verb=ListIdentifiers&metadataPrefix=oai_dc&from=1970-01-02&until=1970-01-01",
            &["badArgument: from is later than until"],
        );
        bad(
            "verb=ListIdentifiers&metadataPrefix=oai_dc&resumptionToken=,5,8JMKD3MGP8W/34PGRBS",
            &["badArgument: resumptionToken is the only argument that is allowed with the verb"],
        );
        bad(
            "verb=ListRecords&set=a::b&metadataPrefix=oai_dc",
            &["badArgument: 'a::b' is not a value of set"],
        );
    }

    #[test]
    fn what_is_not_here_is_reported() {
        bad(
            "verb=ListRecords&metadataPrefix=marc21&set=a:b",
            &[
                "cannotDisseminateFormat: records are available in the formats oai_dc, datacite and oai_openaire, not in 'marc21'",
            ],
        );
        good("verb=ListSets", OaiRequest::ListSets);
        for (set, collection) in [("a:b~40", "a/b@"), ("A~4", "")] {
            good(
                &format!("verb=ListRecords&metadataPrefix=oai_dc&set={set}"),
                OaiRequest::ListRecords(ListSelection {
                    collection: Some(collection.to_owned()),
                    ..ListSelection::default()
                }),
            );
        }
        let token = "badResumptionToken: the resumptionToken is not one of this service; start the list again";
        bad("verb=ListSets&resumptionToken=x", &[token]);
        bad("verb=ListRecords&resumptionToken=", &[token]);
        bad(
            "verb=ListIdentifiers&resumptionToken=x%00",
            &["badArgument: 'x\u{0}' is not a value of resumptionToken"],
        );
    }
}
