//! What others send to the services: a path and a query, in the first line, and what an Archive answers
//! to a resolver, in the rest.

use ibi::pairs::Pairs;
use ibi::relation::Language;
use ibifs::formats::oai::OaiArguments;
use ibifs::formats::query::{FormFields, Query};
use ibifs::formats::registration::{RegistrationAnswer, RegistrationRequest, verb_of};
use ibifs::formats::resolution::{AnswerMeaning, ArchiveQuery, Persistent};
use ibifs::resolver::registry::Inclusion;

use super::{sentence, text, two_lines};

/// Every text is parsed or refused with a sentence; the requests and answers made from it can be parsed.
pub fn check(data: &[u8]) {
    let (line, answer) = two_lines(data);
    let Some(line) = text(line) else {
        return;
    };
    let (path, query) = line.split_once('?').unwrap_or((line, ""));
    match Query::parse(query) {
        Ok(query) => included(&query),
        Err(error) => sentence(&error),
    }
    match FormFields::parse(query) {
        Ok(fields) => form(&fields),
        Err(error) => sentence(&error),
    }
    let question = match Persistent::parse(path, query) {
        Ok(persistent) => persistent.question,
        Err(error) => return sentence(&error),
    };
    asked(&question);
    let Ok(pairs) = Pairs::parse(answer) else {
        return;
    };
    let languages = ["pt-BR", "en"].map(|text| Language::parse(text).expect("a language"));
    match question.meaning(&pairs, &languages) {
        AnswerMeaning::Reached(reached) => {
            assert!(reached.url.starts_with("http"), "{}", reached.url);
            assert!(reached.url.bytes().all(|byte| byte.is_ascii_graphic()));
            let query = reached.acknowledgment("::1", "http://urlib.net:80/x");
            let query = Query::parse(&query).expect("a query");
            assert_eq!(query.get("url"), Some(reached.url.as_str()));
        }
        AnswerMeaning::Onward(next) => asked(&next),
        AnswerMeaning::Nothing | AnswerMeaning::Deleted | AnswerMeaning::Unsatisfying => {}
    }
}

/// What is asked of Archives says what is meant, and no more than it must.
fn asked(question: &ArchiveQuery) {
    let query = Query::parse(&question.query("::1")).expect("a query");
    assert_eq!(query.get("parsedibiurl.ibi"), Some(question.ibi.as_str()));
    assert_eq!(
        query.get_bytes("parsedibiurl.filepath"),
        question
            .filepath
            .as_ref()
            .map(|path| [b"/", path.as_slice()].concat())
            .as_deref()
    );
    assert!(query.get("parsedibiurl.requireditemstatus").is_none());
    let verbs = query.get("parsedibiurl.verblist").unwrap_or_default();
    let again = ibi::relation::Request::union("", verbs).expect("verbs");
    assert_eq!(again, question.request);
}

fn included(query: &Query) {
    match Inclusion::of(query) {
        Ok(inclusion) => {
            let again = Query::parse(&inclusion.query("inclusionRequest")).expect("a query");
            assert_eq!(Inclusion::of(&again).as_ref(), Ok(&inclusion));
        }
        Err(error) => sentence(&error),
    }
}

fn form(fields: &FormFields) {
    let _ = OaiArguments::read(fields);
    let verb = verb_of(fields);
    let known = verb.as_ref().ok().copied();
    if let Err(error) = verb.and_then(|verb| RegistrationRequest::of(verb, fields)) {
        sentence(&error);
        let xml = RegistrationAnswer::Refused(error.to_string()).to_xml(known);
        let is_xml = |character: char| !character.is_control() || character == '\n';
        assert!(xml.chars().all(is_xml), "{xml:?}");
        assert_eq!(xml.matches('<').count(), 5, "{xml}");
    }
}
