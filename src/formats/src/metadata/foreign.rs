//! Records as other programs write them.

use super::*;

#[track_caller]
fn reads(
    text: &str,
    format: RecordFormat,
    core: &str,
    fields: &[(&str, &str)],
) -> BibliographicRecord {
    assert_eq!(sniff_text(text.as_bytes()), format, "{text:.200}");
    assert_eq!(
        sniff("record", text.as_bytes()),
        Some(format),
        "{text:.200}"
    );
    let record = read_metadata_text(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(record.core.to_text(), core);
    for (name, value) in fields {
        assert_eq!(record.field(name), Some(*value), "{name}");
    }
    record
}

#[test]
fn ris_of_zotero() {
    let record = reads(
        "TY  - JOUR\r\nTI  - Chuva na Amazônia\r\nAU  - Silva, Ana Maria da\r\nAU  - Banon, Gerald\r\nT2  - Weather\r\n\
         AB  - It rains.\r\nMuch.\r\nDA  - 2010/03/15/\r\nPY  - 2010\r\nDO  - 10.1000/182\r\nVL  - 3\r\nIS  - 2\r\n\
         SP  - 1\r\nEP  - 9\r\nJ2  - Wthr\r\nLA  - pt\r\nSN  - 0099-1112\r\nUR  - https://example.org/a\r\n\
         L1  - file:///home/u/Zotero/storage/X/a.pdf\r\nN1  - read\r\nKW  - rain\r\nKW  - Amazon\r\nER  - \r\n\r\n\
         TY  - BOOK\r\nTI  - Another\r\nER  - \r\n",
        RecordFormat::Ris,
        "title: Chuva na Amazônia\ncreator: Silva, Ana Maria da\ncreator: Banon, Gerald\nsubject: rain\nsubject: Amazon\n\
         description: It rains. Much.\ndescription: read\ndate: 2010-03-15\ntype: Text\n\
         identifier: https://doi.org/10.1000/182\nidentifier: urn:issn:0099-1112\nidentifier: https://example.org/a\n\
         source: Weather\nlanguage: pt\n",
        &[
            ("journal", "Weather"),
            ("volume", "3"),
            ("number", "2"),
            ("pages", "1–9"),
            ("note", "read"),
        ],
    );
    assert_eq!(record.kind, Some(RecordKind::Article));
}

#[test]
fn csl_json_of_zotero() {
    reads(
        r#"[{"id":"http://zotero.org/users/1/items/X","type":"chapter","abstract":"It rains.","container-title":"The Book",
            "event-place":"São José","ISBN":"978-85-17-00044-7","language":"pt","page":"1-9","publisher":"INPE",
            "publisher-place":"São José","title":"Rain","URL":"https://example.org/a","author":[{"family":"Silva","given":"Ana",
            "non-dropping-particle":"da"},{"literal":"INPE"}],"editor":[{"family":"Banon","given":"Gerald","suffix":"Jr"}],
            "accessed":{"date-parts":[["2026",11,27]]},"issued":{"date-parts":[["2010",3,15]]},"unknown":{"a":[1]}}]"#,
        RecordFormat::Json,
        "title: Rain\ncreator: da Silva, Ana\ncreator: INPE\ndescription: It rains.\npublisher: INPE\n\
         contributor: Banon, Gerald, Jr\ndate: 2010-03-15\ntype: Text\nidentifier: urn:isbn:978-85-17-00044-7\n\
         identifier: https://example.org/a\nsource: The Book\nlanguage: pt\n",
        &[
            ("booktitle", "The Book"),
            ("address", "São José"),
            ("pages", "1-9"),
        ],
    );
    for (issued, expected) in [
        (r#"{"date-parts":[[1999],[2003]]}"#, "1999/2003"),
        (r#"{"date-parts":[[1920]],"circa":true}"#, "1920~"),
        (r#"{"date-parts":[[2010]],"season":1}"#, "2010-21"),
        (r#"{"date-parts":[[-44,3,15]]}"#, "-0044-03-15"),
        (r#"{"raw":"Mar 2010"}"#, "Mar 2010"),
        (r#"{"literal":"long ago"}"#, "long ago"),
    ] {
        let text = format!(r#"{{"type":"book","title":"A","issued":{issued}}}"#);
        let record = BibliographicRecord::from_json(text.as_bytes())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(record.core.first(Element::Date), Some(expected), "{issued}");
    }
}

/// The full example of DataCite 4.4, shortened.
#[test]
fn datacite_in_xml() {
    reads(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<resource xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns="http://datacite.org/schema/kernel-4" xsi:schemaLocation="http://datacite.org/schema/kernel-4 https://schema.datacite.org/meta/kernel-4.4/metadata.xsd">
  <identifier identifierType="DOI">10.5072/D3P26Q35R-Test</identifier>
  <creators><creator><creatorName nameType="Personal">Fosmire, Michael</creatorName><givenName>Michael</givenName><familyName>Fosmire</familyName>
    <nameIdentifier schemeURI="https://orcid.org/" nameIdentifierScheme="ORCID">https://orcid.org/0000-0002-1825-0097</nameIdentifier><affiliation>Purdue</affiliation></creator>
    <creator><creatorName nameType="Organizational">NASA</creatorName></creator></creators>
  <titles><title xml:lang="en">Full DataCite XML Example</title><title titleType="Subtitle">Demonstration</title></titles>
  <publisher xml:lang="en">Purdue Libraries</publisher><publicationYear>2014</publicationYear>
  <subjects><subject schemeURI="http://dewey.info/" subjectScheme="dewey">000 computer science</subject></subjects>
  <contributors><contributor contributorType="ProjectLeader"><contributorName>Starr, Joan</contributorName></contributor></contributors>
  <dates><date dateType="Updated">2014-10-17</date><date dateType="Issued">2014-05</date></dates>
  <language>en-US</language><resourceType resourceTypeGeneral="Software">XML</resourceType>
  <alternateIdentifiers><alternateIdentifier alternateIdentifierType="URL">https://example.org/x</alternateIdentifier></alternateIdentifiers>
  <relatedIdentifiers><relatedIdentifier relatedIdentifierType="DOI" relationType="References">10.1000/1</relatedIdentifier></relatedIdentifiers>
  <sizes><size>4 kB</size></sizes><formats><format>application/xml</format></formats><version>4.1</version>
  <rightsList><rights rightsURI="http://creativecommons.org/publicdomain/zero/1.0/">CC0 1.0 Universal</rights></rightsList>
  <descriptions><description descriptionType="Other">Other words</description><description xml:lang="en" descriptionType="Abstract">XML example</description></descriptions>
  <geoLocations><geoLocation><geoLocationPlace>Atlantic Ocean</geoLocationPlace></geoLocation></geoLocations>
  <fundingReferences><fundingReference><funderName>NSF</funderName><awardNumber>CBET-106</awardNumber></fundingReference></fundingReferences>
</resource>"#,
        RecordFormat::Datacite,
        "title: Full DataCite XML Example\ntitle: Demonstration\ncreator: Fosmire, Michael\ncreator: NASA\n\
         subject: 000 computer science\ndescription: XML example\ndescription: Other words\npublisher: Purdue Libraries\n\
         contributor: Starr, Joan\ndate: 2014-05\ntype: Software\ntype: XML\nformat: application/xml\nformat: 4 kB\n\
         identifier: https://doi.org/10.5072/D3P26Q35R-Test\nidentifier: https://example.org/x\nlanguage: en-US\n\
         relation: https://doi.org/10.1000/1\ncoverage: Atlantic Ocean\nrights: CC0 1.0 Universal\n",
        &[
            ("orcid", "0000-0002-1825-0097 Fosmire, Michael"),
            ("version", "4.1"),
            ("funding", "NSF: CBET-106"),
            ("affiliation", "Purdue"),
            ("note", "Other words"),
        ],
    );
}

/// As DataCite's service answers.
#[test]
fn datacite_in_json() {
    reads(
        r#"{"data":{"id":"10.5072/x","type":"dois","attributes":{"doi":"10.5072/x","titles":[{"title":"Rain"}],"creators":[{"name":"Silva, Ana",
            "nameType":"Personal","nameIdentifiers":[{"nameIdentifier":"https://orcid.org/0000-0002-1825-0097","nameIdentifierScheme":"ORCID"}]}],
            "publisher":":unav","publicationYear":2010,"types":{"resourceTypeGeneral":"Dataset"},"subjects":[{"subject":"rain"}],
            "rightsList":[{"rightsIdentifier":"cc-by-4.0","rightsUri":"https://creativecommons.org/licenses/by/4.0/legalcode"}]}}}"#,
        RecordFormat::Json,
        "title: Rain\ncreator: Silva, Ana\nsubject: rain\ndate: 2010\ntype: Dataset\nidentifier: https://doi.org/10.5072/x\n\
         rights: https://creativecommons.org/licenses/by/4.0/legalcode\n",
        &[
            ("doi", "10.5072/x"),
            ("orcid", "0000-0002-1825-0097 Silva, Ana"),
        ],
    );
}

/// As the pages of Zenodo and Dataverse have it.
#[test]
fn schema_org() {
    reads(
        r#"{"@context":"http://schema.org","@type":"Dataset","@id":"https://doi.org/10.5281/zenodo.1","identifier":"https://doi.org/10.5281/zenodo.1",
            "name":"Rain","creator":[{"@type":"Person","name":"Ana Silva","givenName":"Ana","familyName":"Silva","@id":"https://orcid.org/0000-0002-1825-0097",
            "affiliation":{"@type":"Organization","name":"INPE"}}],"author":[],"datePublished":"2010-03-15","license":"https://creativecommons.org/licenses/by/4.0/",
            "keywords":"rain, Amazon","inLanguage":{"alternateName":"eng","@type":"Language","name":"English"},"publisher":{"@type":"Organization","name":"Zenodo"},
            "description":"It rains.","version":"v2","funder":{"@type":"Organization","name":"FAPESP"}}"#,
        RecordFormat::Json,
        "title: Rain\ncreator: Silva, Ana\nsubject: rain\nsubject: Amazon\ndescription: It rains.\npublisher: Zenodo\ndate: 2010-03-15\n\
         type: Dataset\nidentifier: https://doi.org/10.5281/zenodo.1\nlanguage: eng\nrights: https://creativecommons.org/licenses/by/4.0/\n",
        &[
            ("orcid", "0000-0002-1825-0097 Silva, Ana"),
            ("version", "v2"),
            ("funding", "FAPESP"),
            ("affiliation", "INPE"),
        ],
    );
}

#[test]
fn citation_cff() {
    let text = "# By hand\ncff-version: 1.2.0\nmessage: \"If you use it, cite it.\"\ntitle: My Research Software\nauthors:\n  - family-names: Druskat\n    \
                given-names: Stephan\n    orcid: https://orcid.org/0000-0002-1825-0097\n  - name: \"The Team\"\nversion: 2.0.4\ndoi: 10.5281/zenodo.1234\n\
                date-released: 2017-12-18\nkeywords:\n  - research\nlicense: Apache-2.0\nrepository-code: \"https://github.com/a/b\"\n";
    let record = reads(
        text,
        RecordFormat::Cff,
        "title: My Research Software\ncreator: Druskat, Stephan\ncreator: The Team\nsubject: research\ndate: 2017-12-18\ntype: Software\n\
         identifier: https://doi.org/10.5281/zenodo.1234\nidentifier: https://github.com/a/b\nrights: Apache-2.0\n",
        &[
            ("version", "2.0.4"),
            ("orcid", "0000-0002-1825-0097 Druskat, Stephan"),
        ],
    );
    assert_eq!(record.kind, Some(RecordKind::Software));
    let bomb = format!(
        "cff-version: 1.2.0\na: &a [x, x]\nb: &b [*a, *a]\ntitle: {}\n",
        "[".repeat(100_000)
    );
    for text in ["cff-version: [", "cff-version: 1.2.0\n\t- a: b: c\n", &bomb] {
        assert!(
            BibliographicRecord::from_cff(text.as_bytes()).is_err(),
            "{text:.40}"
        );
    }
}

#[test]
fn mods_of_a_library() {
    reads(
        r#"<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><nonSort>The</nonSort><title>rain</title><subTitle>in Brazil</subTitle></titleInfo>
            <name type="personal"><namePart type="family">Silva</namePart><namePart type="given">Ana</namePart><role><roleTerm authority="marcrelator">aut</roleTerm></role></name>
            <name type="personal"><namePart>Banon, Gerald</namePart><role><roleTerm type="text">editor</roleTerm></role></name>
            <genre>article</genre><originInfo><publisher>INPE</publisher><dateIssued encoding="w3cdtf">2010-03</dateIssued></originInfo>
            <language><languageTerm type="code">por</languageTerm></language><abstract>It rains.</abstract>
            <subject><topic>rain</topic><geographic>Brazil</geographic></subject><subject><topic>weather</topic></subject>
            <relatedItem type="host"><titleInfo><title>Weather</title></titleInfo><part><detail type="volume"><number>3</number></detail>
            <extent unit="pages"><start>1</start><end>9</end></extent></part></relatedItem>
            <identifier type="doi">10.1000/182</identifier><accessCondition>CC BY 4.0</accessCondition></mods>"#,
        RecordFormat::Mods,
        "title: The rain: in Brazil\ncreator: Silva, Ana\nsubject: rain\nsubject: weather\ndescription: It rains.\npublisher: INPE\n\
         contributor: Banon, Gerald\ndate: 2010-03\ntype: Text\ntype: article\nidentifier: https://doi.org/10.1000/182\nsource: Weather\n\
         language: por\ncoverage: Brazil\nrights: CC BY 4.0\n",
        &[
            ("journal", "Weather"),
            ("volume", "3"),
            ("pages", "1–9"),
            ("editor", "Banon, Gerald"),
        ],
    );
}

#[test]
fn dublin_core_of_dspace() {
    reads(
        r#"<?xml version="1.0" encoding="utf-8" standalone="no"?><dublin_core schema="dc"><dcvalue element="contributor" qualifier="author">Silva, Ana</dcvalue>
            <dcvalue element="date" qualifier="accessioned">2020-01-01T00:00:00Z</dcvalue><dcvalue element="date" qualifier="issued">2010</dcvalue>
            <dcvalue element="description" qualifier="provenance" language="en">Submitted by a@b.c</dcvalue>
            <dcvalue element="description" qualifier="abstract">It rains.</dcvalue><dcvalue element="title" qualifier="none">Rain</dcvalue>
            <dcvalue element="identifier" qualifier="uri">http://hdl.handle.net/1/2</dcvalue><dcvalue element="subject" qualifier="none">rain</dcvalue></dublin_core>"#,
        RecordFormat::Dspace,
        "title: Rain\ncreator: Silva, Ana\nsubject: rain\ndescription: It rains.\ndate: 2010\ntype: Text\nidentifier: http://hdl.handle.net/1/2\n",
        &[],
    );
}

#[test]
fn qualified_dublin_core() {
    let text = "<q xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:t='http://purl.org/dc/terms/' xmlns:rdf='r'><dc:title>Rain</dc:title>\
                <dc:date>2020</dc:date><t:issued>2010-03</t:issued><t:abstract>It rains.</t:abstract><t:spatial>Brazil</t:spatial>\
                <dc:subject><rdf:Bag><rdf:li>rain</rdf:li> <rdf:li>sea</rdf:li></rdf:Bag></dc:subject></q>";
    let record = read_metadata_text(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        record.core.to_text(),
        "title: Rain\nsubject: rain\nsubject: sea\ndescription: It rains.\ndate: 2010-03\ndate: 2020\ncoverage: Brazil\n"
    );
}

#[test]
fn an_entry_inherits_from_the_one_it_refers_to() {
    let record = BibliographicRecord::from_bibtex(
        b"@inproceedings{a, author = {Silva, Ana and others}, title = {Rain}, crossref = {P}, note = {read}}\n\
          @misc{b, title = {Other}}\n@proceedings{p, title = {Proceedings}, editor = {Banon, Gerald}, year = 2010, note = {no}}",
    );
    let record = record.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(record.field("booktitle"), Some("Proceedings"));
    assert_eq!(record.field("editor"), Some("Banon, Gerald"));
    assert_eq!(record.core.first(Element::Date), Some("2010"));
    assert_eq!(record.field("others"), Some("author"));
    assert_eq!(record.descriptions(), (vec![], vec!["read"]));
}

#[test]
fn lines_have_fields_beyond_dublin_core() {
    let text = b"title: Rain\ncreator: Silva, Ana\norcid: https://orcid.org/0000-0002-1825-0097\nversion: 1.2\n\
                 funder: FAPESP: 2019/1\ntags: rain, sea\nlicense: CC BY 4.0\n";
    assert!(check(text).is_empty());
    let record = read_metadata_text(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        record.orcids().get("Silva, Ana").map(String::as_str),
        Some("0000-0002-1825-0097")
    );
    assert_eq!(record.field("version"), Some("1.2"));
    assert_eq!(
        record.funding().collect::<Vec<_>>(),
        [("FAPESP", Some("2019/1"))]
    );
    assert_eq!(record.core.values(Element::Subject).count(), 2);
    let wrong = b"title: A\ndate: long ago\ncreator: B\norcid: 0000-0002-1825-0098\n";
    let found: Vec<String> = check(wrong).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "line 2 has the date 'long ago', which is not understood and stays as it is; write it as 2010-03-15, or as EDTF has it",
            "line 4 has '0000-0002-1825-0098', which is no ORCID iD; a digit may be wrong",
        ]
    );
    assert!(check(wrong).iter().all(|problem| !problem.is_error()));
    let tex = check(b"@misc{a,\n title = {A \\foo{b}}}");
    assert_eq!(
        tex.first().map(ToString::to_string).as_deref(),
        Some("line 2 has the TeX command '\\foo', which is not known and stays as it is")
    );
}
