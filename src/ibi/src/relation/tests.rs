//! Modifiers, verbs and relation names: what is read, what is refused, and how each is written.

use super::*;

#[test]
fn two_question_marks_ask_for_the_metadata() {
    for (older, signs) in [("??", ":"), ("!??", "!:"), ("!+(pt)??", "!+(pt):")] {
        assert_eq!(Request::parse_tail(older), Request::parse_tail(signs));
    }
    for bad in ["???", ":??", "??:", "?GetMetadata??"] {
        assert!(Request::parse_tail(bad).is_err(), "{bad}");
    }
}

/// One row of the table of compositions, in all three spellings.
#[track_caller]
fn row(signs: &str, relation: &str, verbs: &str) {
    let modifier = Modifier::parse(signs).expect(signs);
    assert_eq!(modifier.to_string(), signs);
    assert_eq!(modifier.relation_path(), relation);
    assert_eq!(modifier.verbs(), verbs);
    let request = Request::Modifier(modifier);
    assert_eq!(Request::parse_tail(signs).as_ref(), Ok(&request));
    assert_eq!(
        Request::parse_tail(&format!("?{verbs}")).as_ref(),
        Ok(&request)
    );
    assert_eq!(
        Request::parse_verbs(&verbs.replace('+', " ")).as_ref(),
        Ok(&request)
    );
    assert_eq!(request.to_string(), signs);
}

#[track_caller]
fn file_list(verbs: &str, signs: Option<&str>) {
    let modifier = signs.map(|signs| Modifier::parse(signs).expect(signs));
    let request = Request::parse_verbs(verbs).expect(verbs);
    assert_eq!(request, Request::FileList(modifier));
    assert_eq!(Request::parse_tail(&request.to_string()), Ok(request));
}

#[track_caller]
fn bad(tail: &str, sentence: &str) {
    assert_eq!(
        Request::parse_tail(tail).expect_err(tail).to_string(),
        sentence
    );
}

#[track_caller]
fn union(tail: &str, verbs: &str, expected: &str) {
    let request = Request::union(tail, verbs).expect(tail);
    let text = request.map_or(String::new(), |request| request.to_string());
    assert_eq!(text, expected, "{tail} and {verbs}");
}

/// Verbs after those of the modifier, no repeats.
#[test]
fn a_modifier_and_verbs_together() {
    union("", "", "");
    union("!", "", "!");
    union("+", "GetMetadata", "+:");
    union(
        "!:(oai_dc)",
        "GetLastEdition GetMetadata(oai_dc)",
        "!:(oai_dc)",
    );
    union("!", "GetFileList", "?GetLastEdition+GetFileList");
    union("", " GetFileList ", "?GetFileList");
    union("", "GetTranslation GetMetadata GetTranslation", "+:+");
    union("?GetLastEdition", "GetMetadata(oai_dc)", "!:(oai_dc)");
    let sentence = Request::union(":", "GetLastEdition").expect_err("no composition");
    assert!(sentence.to_string().contains(":!"), "{sentence}");
    assert!(Request::union("", "GetNothing").is_err());
}

#[test]
fn relations_of_pairs() {
    for signs in ["!", "+(pt-BR):(oai_dc)", "+!:+", "!+:+(en)"] {
        let modifier = Modifier::parse(signs).expect(signs);
        let relation = modifier.relation_path();
        let steps = Step::parse_relation(&relation).expect(signs);
        let bare: String = steps.iter().map(Step::relation).collect();
        assert_eq!(bare, relation);
    }
    let steps = Modifier::parse("!+(pt-BR):(oai_dc)").expect("good").steps;
    let text = ".lastedition.translation(pt-BR).metadata(oai_dc)";
    assert_eq!(Step::parse_relation(text), Some(steps));
    assert_eq!(Step::parse_relation(""), Some(Vec::new()));
    for bad in [
        "x",
        ".",
        ".nextedition",
        ".lastedition(pt)",
        ".translation(pt",
        ".translation()",
        ".metadata.",
    ] {
        assert_eq!(Step::parse_relation(bad), None, "{bad}");
    }
}

#[test]
#[rustfmt::skip] // one case, one line
fn the_table_of_spec_6() {
    row(":", ".metadata", "GetMetadata");
    row(":+", ".metadata.translation", "GetMetadata+GetTranslation");
    row("!", ".lastedition", "GetLastEdition");
    row("!+", ".lastedition.translation", "GetLastEdition+GetTranslation");
    row("!:", ".lastedition.metadata", "GetLastEdition+GetMetadata");
    row("!+:", ".lastedition.translation.metadata", "GetLastEdition+GetTranslation+GetMetadata");
    row("!:+", ".lastedition.metadata.translation", "GetLastEdition+GetMetadata+GetTranslation");
    row("!+:+", ".lastedition.translation.metadata.translation", "GetLastEdition+GetTranslation+GetMetadata+GetTranslation");
    row("+", ".translation", "GetTranslation");
    row("+!", ".translation.lastedition", "GetTranslation+GetLastEdition");
    row("+:", ".translation.metadata", "GetTranslation+GetMetadata");
    row("+!:", ".translation.lastedition.metadata", "GetTranslation+GetLastEdition+GetMetadata");
    row("+:+", ".translation.metadata.translation", "GetTranslation+GetMetadata+GetTranslation");
    row("+!:+", ".translation.lastedition.metadata.translation", "GetTranslation+GetLastEdition+GetMetadata+GetTranslation");
}

#[test]
fn parameters() {
    row(":(oai_dc)", ".metadata", "GetMetadata(oai_dc)");
    row(":(BibINPE)", ".metadata", "GetMetadata(BibINPE)");
    row("+(pt)", ".translation", "GetTranslation(pt)");
    row("+(pt-BR)", ".translation", "GetTranslation(pt-BR)");
    row(
        "!:(oai_dc)",
        ".lastedition.metadata",
        "GetLastEdition+GetMetadata(oai_dc)",
    );
    row(
        "+(pt)!:(oai_dc)+(en)",
        ".translation.lastedition.metadata.translation",
        "GetTranslation(pt)+GetLastEdition+GetMetadata(oai_dc)+GetTranslation(en)",
    );
}

#[test]
fn file_lists() {
    file_list("GetFileList", None);
    file_list("GetLastEdition+GetFileList", Some("!"));
    file_list("GetFileList+GetLastEdition", Some("!"));
    file_list(
        "GetLastEdition+GetFileList+GetMetadata(oai_dc)",
        Some("!:(oai_dc)"),
    );
}

#[test]
fn exactly_fourteen_compositions() {
    let mut found = 0;
    for number in 0..3usize.pow(6) {
        let signs: String = (0..6)
            .map(|place| ['!', '+', ':'][number / 3usize.pow(place) % 3])
            .collect();
        let all_lengths = (1..=6).filter(|length| number < 3usize.pow(*length as u32));
        found += all_lengths
            .filter(|length| Modifier::parse(&signs[..*length]).is_ok())
            .count();
    }
    assert_eq!(found, 14);
    assert_eq!(Modifier::compositions().count(), found);
}

#[test]
fn names() {
    assert_eq!(split_name("34PGRBS!"), Some(("34PGRBS", "!")));
    assert_eq!(split_name("34PGRBS+(pt):"), Some(("34PGRBS", "+(pt):")));
    assert_eq!(
        split_name("02.16.17.46?GetFileList"),
        Some(("02.16.17.46", "?GetFileList"))
    );
    assert_eq!(split_name("34PGRBS"), None);
    assert_eq!(split_name(""), None);
    assert_eq!(split_name("!"), None);
    assert_eq!(split_name("é:é"), Some(("é", ":é")));
}

#[test]
#[rustfmt::skip] // one case, one line
fn what_is_no_modifier() {
    let fourteen =
        "is not one of the fourteen compositions of last edition, translation and metadata";
    let language = "is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR";
    let verb = "is not one of GetLastEdition, GetTranslation, GetMetadata, GetFileList and GetFormats";
    bad("", &format!("modifier '' {fourteen}"));
    bad("!!", &format!("modifier '!!' {fourteen}"));
    bad(":!", &format!("modifier ':!' {fourteen}"));
    bad("+!+", &format!("modifier '+!+' {fourteen}"));
    bad("!x", "character 'x' at byte 2 of modifier '!x' is not one of !, + and :");
    bad("!(pt)", "character '(' at byte 2 of modifier '!(pt)' is not one of !, + and :");
    bad("!é(", "character 'é' at byte 2 of modifier '!é(' is not one of !, + and :");
    bad("!+(pt", "parenthesis '(' at byte 3 of modifier '!+(pt' is not closed");
    bad("!+(PT)", &format!("language 'PT' at byte 4 of modifier '!+(PT)' {language}"));
    bad("+()", &format!("language '' at byte 3 of modifier '+()' {language}"));
    bad(":(oai dc)", "format 'oai dc' at byte 3 of modifier ':(oai dc)' is not a word of letters, digits, _ and -");
    bad("!?GetMetadata", "character '?' at byte 2 of modifier '!?GetMetadata' is not one of !, + and :");
    bad("?", &format!("verb '' at byte 1 of verbs '' {verb}"));
    bad("?getmetadata", &format!("verb 'getmetadata' at byte 1 of verbs 'getmetadata' {verb}"));
    bad("?GetMetadata+", &format!("verb '' at byte 13 of verbs 'GetMetadata+' {verb}"));
    bad("?GetMetadata(a", &format!("verb 'GetMetadata(a' at byte 1 of verbs 'GetMetadata(a' {verb}"));
    bad("?GetMetadata+GetLastEdition(1)", "verb 'GetLastEdition(1)' at byte 13 of verbs 'GetMetadata+GetLastEdition(1)' takes no parameter");
    bad("?GetFileList+GetFileList", "verb 'GetFileList' at byte 13 of verbs 'GetFileList+GetFileList' was there before");
    bad("?GetMetadata+GetMetadata", &format!("modifier 'GetMetadata+GetMetadata' {fourteen}"));
    bad("?GetTranslation(x)", &format!("language 'x' at byte 16 of verbs 'GetTranslation(x)' {language}"));
}
