use super::*;

fn question(path: &str, query: &str) -> ArchiveQuery {
    Persistent::parse(path, query).expect(path).question
}

#[track_caller]
fn means(question: &ArchiveQuery, answer: &str, languages: &str, expected: &str) {
    let pairs = Pairs::parse(answer.as_bytes()).expect("pairs");
    let languages: Vec<Language> = languages
        .split_whitespace()
        .map(|text| Language::parse(text).expect(text))
        .collect();
    let found = match question.meaning(&pairs, &languages) {
        AnswerMeaning::Nothing => "nothing".to_owned(),
        AnswerMeaning::Deleted => "deleted".to_owned(),
        AnswerMeaning::Unsatisfying => "unsatisfying".to_owned(),
        AnswerMeaning::Reached(reached) => reached.url,
        AnswerMeaning::Onward(question) => format!(
            "ask {} {}",
            question.ibi,
            question
                .request
                .map_or(String::new(), |request| request.to_string())
        ),
    };
    assert_eq!(found.trim_end(), expected, "{answer}");
}

/// An example of ibi-resolution(7): the query, the meaning of the answer, the acknowledgment.
#[test]
fn the_documents_example_without_a_modifier() {
    let question = question("8JMKD3MGP8W/35MMLL8", "");
    let reader = "172.16.44.200 150.163.68.1";
    assert_eq!(
        question.query(reader),
        "clientinformation.ipaddress=172.16.44.200%20150.163.68.1\
         &parsedibiurl.ibi=8JMKD3MGP8W/35MMLL8&parsedibiurl.verblist=&servicesubject=urlRequest"
    );
    let answer = "archiveaddress mtc-m16c.sid.inpe.br\ncontenttype Data\n\
        ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}\n\
        ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}\n\
        ibi.platformsoftware {rep dpi.inpe.br/banon/1998/08.02.08.56}\n\
        state Original\ntimestamp 2009-07-21T14:43:31Z\n\
        url http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009/07.21.14.43/doc/CCSDS%20650.0-B-1.pdf\n\
        urlkey 1427244889-5349022633744855\n";
    let pairs = Pairs::parse(answer.as_bytes()).expect("pairs");
    let AnswerMeaning::Reached(reached) = question.meaning(&pairs, &[]) else {
        panic!("not reached");
    };
    assert_eq!(reached.state, Some(State::Original));
    assert_eq!(
        reached.acknowledgment(reader, "http://urlib.net:80/8JMKD3MGP8W/35MMLL8"),
        "clientinformation.ipaddress=172.16.44.200%20150.163.68.1&contenttype=Data\
         &ibi=rep%20sid.inpe.br/mtc-m18@80/2009/07.21.14.43%20ibip%208JMKD3MGP8W/35MMLL8\
         &servicesubject=acknowledgment&state=Original\
         &url=http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009/07.21.14.43/doc/CCSDS%2520650.0-B-1.pdf\
         &url.persistent=http://urlib.net:80/8JMKD3MGP8W/35MMLL8&urlkey=1427244889-5349022633744855"
    );
}

/// The first answer has only the next edition, the second the URL.
#[test]
fn the_documents_example_with_a_modifier() {
    let first = question("8JMKD3MGP8W/35MMLL8!:(oai_dc)", "");
    assert_eq!(
        first.query("172.16.44.200"),
        "clientinformation.ipaddress=172.16.44.200&parsedibiurl.ibi=8JMKD3MGP8W/35MMLL8\
         &parsedibiurl.verblist=GetLastEdition%20GetMetadata(oai_dc)&servicesubject=urlRequest"
    );
    let answer = "archiveaddress mtc-m16c.sid.inpe.br\n\
        ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}\n\
        ibi.nextedition {rep sid.inpe.br/mtc-m18/2012/07.12.18.08}\n";
    means(
        &first,
        answer,
        "",
        "ask sid.inpe.br/mtc-m18/2012/07.12.18.08 !:(oai_dc)",
    );
    let answer = "contenttype.lastedition.metadata(oai_dc) Metadata\n\
        ibi {rep sid.inpe.br/mtc-m18/2012/07.12.18.08 ibip 8JMKD3MGP8W/3C9EP6P}\n\
        ibi.lastedition.metadata(oai_dc) {rep sid.inpe.br/mtc-m18/2012/07.12.18.08.49}\n\
        state.lastedition.metadata(oai_dc) Original\n\
        url.lastedition.metadata(oai_dc) http://mtc-m16c.sid.inpe.br/metadata.cgi?choice=oai_dc\n\
        urlkey 1426286454-36108967764060357";
    means(
        &first,
        answer,
        "",
        "http://mtc-m16c.sid.inpe.br/metadata.cgi?choice=oai_dc",
    );
    let pairs = Pairs::parse(answer.as_bytes()).expect("pairs");
    let AnswerMeaning::Reached(reached) = first.meaning(&pairs, &[]) else {
        panic!("not reached");
    };
    let acknowledged =
        reached.acknowledgment("::1", "http://urlib.net:80/8JMKD3MGP8W/35MMLL8!:(oai_dc)");
    for pair in [
        "contenttype=Metadata",
        "ibi=rep%20sid.inpe.br/mtc-m18/2012/07.12.18.08.49",
        "state=Original",
        "url=http://mtc-m16c.sid.inpe.br/metadata.cgi%3Fchoice%3Doai_dc",
        "url.persistent=http://urlib.net:80/8JMKD3MGP8W/35MMLL8!:(oai_dc)",
    ] {
        assert!(
            acknowledged.split('&').any(|found| found == pair),
            "{pair} in {acknowledged}"
        );
    }
}

#[test]
#[rustfmt::skip] // one case, one line
fn what_answers_mean() {
    const IBI: &str = "ibi {rep a.br/b/2001/01.01.01.01 ibip 8JMKD3MGP8W/34PGRBS}\n";
    let itself = question("a.br/b/2001/01.01.01.01", "");
    let with = |more: &str| format!("{IBI}{more}");
    means(&itself, "", "", "nothing");
    means(&itself, "url http://x/", "", "nothing");
    means(&itself, &with("state Deleted timestamp 2009-07-21T14:43:31Z"), "", "deleted");
    means(&itself, &with("url http://x/ state Copy"), "", "http://x/");
    means(&itself, &with("state Copy"), "", "unsatisfying");
    // URLs to which a reader must not be redirected.
    for url in ["javascript:alert(1)", "ftp://x/", "http://", "{http://x http://y}", "//x/"] {
        means(&itself, &with(&format!("url {url}")), "", "unsatisfying");
    }
    let last = question("a.br/b/2001/01.01.01.01!", "");
    means(&last, &with("url http://x/"), "", "unsatisfying");
    means(&last, &with("url http://x/ url.lastedition http://y/"), "", "http://y/");
    means(&last, &with("ibi.nextedition {ibip 8JMKD3MGP8W/35MMLL8}"), "", "ask 8JMKD3MGP8W/35MMLL8 !");
    means(&last, &with("ibi.lastedition 8JMKD3MGP8W/35MMLL8"), "", "ask 8JMKD3MGP8W/35MMLL8");
    let metadata = question("a.br/b/2001/01.01.01.01:", "");
    means(&metadata, &with("url.metadata(oai_dc) http://d/ url.metadata http://m/"), "", "http://m/");
    means(&metadata, &with("url.metadata(oai_dc) http://d/"), "", "http://d/");
    means(&metadata, &with("ibi.metadata {rep a.br/b/2001/01.01.01.01.05}"), "", "ask a.br/b/2001/01.01.01.01.05");
    means(&metadata, &with("ibi.nextedition {ibip 8JMKD3MGP8W/35MMLL8}"), "", "unsatisfying");
    let format = question("a.br/b/2001/01.01.01.01+(pt):(oai_dc)", "");
    means(&format, &with("ibi.translation(pt) {rep c.br/d/2001/01.01.01.01}"), "", "ask c.br/d/2001/01.01.01.01 :(oai_dc)");
    means(&format, &with("ibi.translation(en) {rep c.br/d/2001/01.01.01.01}"), "", "unsatisfying");
    means(&format, &with("url.translation(pt-BR).metadata(oai_dc) http://b/"), "", "http://b/");
    let list = question("a.br/b/2001/01.01.01.01!", "ibiurl.verblist=GetFileList");
    means(&list, &with("url.lastedition http://y/"), "", "http://y/");
    means(&list, &with("ibi.lastedition 8JMKD3MGP8W/35MMLL8"), "", "ask 8JMKD3MGP8W/35MMLL8 ?GetFileList");
}

#[test]
#[rustfmt::skip] // one case, one line
fn the_readers_languages_choose() {
    let question = question("a.br/b/2001/01.01.01.01+", "");
    let answer = "ibi {rep a.br/b/2001/01.01.01.01}\n\
        ibi.translation(en) {rep a.br/b/2001/01.01.01.01} url.translation(en) http://en/\n\
        ibi.translation(pt-BR) {rep c.br/d/2001/01.01.01.01} url.translation(pt-BR) http://pt/\n\
        ibi.translation(fr) {rep e.br/f/2001/01.01.01.01} url.translation(fr) http://fr/";
    means(&question, answer, "fr pt", "http://fr/");
    means(&question, answer, "de pt", "http://pt/");
    means(&question, answer, "pt-BR en", "http://pt/");
    means(&question, answer, "en", "http://en/");
    // If no language fits, the item itself is better than any translation.
    means(&question, answer, "de", "http://en/");
    means(&question, answer, "", "http://en/");
    means(&question, "ibi a.br/b/2001/01.01.01.01 url.translation http://x/", "pt", "http://x/");
    // A translation in another Archive counts as much as a local one.
    let elsewhere = answer.replace("url.translation(pt-BR) http://pt/", "");
    means(&question, &elsewhere, "pt en", "ask c.br/d/2001/01.01.01.01");
    means(&question, &elsewhere, "en pt", "http://en/");
    let metadata = self::question("a.br/b/2001/01.01.01.01+:(oai_dc)", "");
    let elsewhere = "ibi a.br/b/2001/01.01.01.01 ibi.translation(pt) {rep c.br/d/2001/01.01.01.01} \
        ibi.translation(en) a.br/b/2001/01.01.01.01 url.translation(en).metadata(oai_dc) http://en/";
    means(&metadata, elsewhere, "pt", "ask c.br/d/2001/01.01.01.01 :(oai_dc)");
    means(&metadata, elsewhere, "en pt", "http://en/");
}

#[track_caller]
fn reads(path: &str, query: &str, ibi: &str, filepath: &str, request: &str) {
    let read = Persistent::parse(path, query).expect(path);
    let question = read.question;
    assert_eq!(question.ibi, ibi, "{path}");
    let found = question.filepath.unwrap_or_default();
    assert_eq!(found, filepath.as_bytes(), "{path}");
    let text = question
        .request
        .map_or(String::new(), |request| request.to_string());
    assert_eq!(text, request, "{path}?{query}");
}

/// The examples of ibi-resolution(7), and other input of readers.
#[test]
#[rustfmt::skip] // one case, one line
fn persistent_urls() {
    reads("LK47B6W/362SFKH/reference.bib", "", "LK47B6W/362SFKH", "reference.bib", "");
    reads("8JMKD3MGP8W/35MMLL8!:(oai_dc)", "", "8JMKD3MGP8W/35MMLL8", "", "!:(oai_dc)");
    reads("8JMKD3MGP8W/35MME4E+(pt)", "", "8JMKD3MGP8W/35MME4E", "", "+(pt)");
    reads("LK47B6W/362SFKH", "ibiurl.verblist=GetFileList", "LK47B6W/362SFKH", "", "?GetFileList");
    reads("LK47B6W/362SFKH+", "ibiurl.requireditemstatus=Original&ibiurl.verblist=GetMetadata", "LK47B6W/362SFKH", "", "+:");
    reads("sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "", "sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "", "");
    reads("sid.inpe.br/mtc-m18%4080/2009/02.16.17.46%21/a%20b/c.pdf", "x=y", "sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "a b/c.pdf", "!");
    reads("6RPa7umaZ/UaJFT", "", "6RPa7umaZ/UaJFT", "", "");
    reads("LK47B6W/362SFKH", "?", "LK47B6W/362SFKH", "", ":");
    reads("LK47B6W/362SFKH", "GetFileList", "LK47B6W/362SFKH", "", "?GetFileList");
    reads("LK47B6W/362SFKH", "other", "LK47B6W/362SFKH", "", "");
    reads("rep/LK47B6W/362SFKH", "languagebutton=en", "LK47B6W/362SFKH", "", "");
    reads("ibi/LK47B6W/362SFKH", "", "LK47B6W/362SFKH", "", "");
    reads("rep-/LK47B6W/362SFKH", "", "LK47B6W/362SFKH", "", "?GetFileList");
    reads("ibi-/LK47B6W/362SFKH!", "", "LK47B6W/362SFKH", "", "?GetLastEdition+GetFileList");
    reads("col/sid.inpe.br/mtc-m18%4080/2009/02.16.17.46/doc/a%20b.pdf", "", "sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "doc/a b.pdf", "");
    reads("col/a.br/b/2009/02.16.17.46/doc/goto-/LK47B6W/362SFKH+(pt-BR)", "", "LK47B6W/362SFKH", "", "+(pt-BR)");
    reads("col/a.br/b/2009/02.16.17.46/doc/mirrorget.cgi", "choice=full&metadatarepository=LK47B6W/362SFKH", "LK47B6W/362SFKH", "", "");
    reads("upn:9HFNHE:CBnmVX32PXQZeBBx/qg53m", "", "CBnmVX32PXQZeBBx/qg53m", "", "");
    reads("ibi:LK47B6W/362SFKH:(BibINPE)", "ibiurl.backgroundlanguage=en", "LK47B6W/362SFKH", "", ":(BibINPE)");
    let level = Persistent::parse("rep-/sid.inpe.br/marciana/2004/", "").expect_err("a level");
    assert_eq!(level, PersistentUrlError::Level("sid.inpe.br/marciana/2004".to_owned()));
    let read = Persistent::parse("LK47B6W/362SFKH", "ibiurl.requireditemstatus=Original").expect("good");
    assert!(read.is_original_required);
    assert!(!Persistent::parse("LK47B6W/362SFKH", "").expect("good").is_original_required);
    for (path, query) in [("", ""), ("x", ""), ("favicon.ico", ""), ("LK47B6W/362SFKH%", ""), ("LK47B6W%ff/362SFKH", ""),
        ("LK47B6W/362SFKH:!", ""), ("LK47B6W/362SFKH", "ibiurl.verblist=Get"), ("LK47B6W/362SFKH", "ibiurl.requireditemstatus=Copy"), ("LK47B6W/362SFKH", "a=%")] {
        let error = Persistent::parse(path, query).expect_err(path);
        assert!(error.to_string().len() > 10, "{error}");
    }
    // The path of a file need not be UTF-8; it reaches the Archives as it is.
    let latin = question("LK47B6W/362SFKH/Relat%f3rio.pdf", "");
    assert_eq!(latin.filepath.as_deref(), Some(&b"Relat\xf3rio.pdf"[..]));
    assert!(latin.query("::1").contains("&parsedibiurl.filepath=/Relat%F3rio.pdf&"));
    // A query has no more information than necessary.
    let query = question("LK47B6W/362SFKH+", "ibiurl.requireditemstatus=Original").query("::1");
    assert!(!query.contains("riginal") && !query.contains("anguage"), "{query}");
    assert!(question("LK47B6W/362SFKH:", "").meaning(&Pairs::default(), &[]) == AnswerMeaning::Nothing);
}
