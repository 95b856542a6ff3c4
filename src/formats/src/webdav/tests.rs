use super::*;

fn file() -> Resource {
    Resource {
        href: "/dav/a%20b".to_owned(),
        name: b"a \xff<\x01".to_vec(),
        file: Some(FileProperties {
            length: 7,
            media_type: "text/plain",
            tag: Some("\"1-2\"".to_owned()),
        }),
        changed: Some("Sun, 02 Feb 2020 02:02:02 GMT".to_owned()),
        created: None,
    }
}

fn answer(body: &str, resource: &Resource) -> String {
    let mut xml = String::new();
    let wanted = Wanted::parse(body.as_bytes()).expect(body);
    wanted.write(resource, &mut xml);
    xml
}

#[test]
fn all_properties_are_answered() {
    let all = "<D:response><D:href>/dav/a%20b</D:href><D:propstat><D:prop><D:resourcetype/>\
        <D:displayname>a \u{fffd}&lt;\u{fffd}</D:displayname><D:getcontentlength>7</D:getcontentlength>\
        <D:getcontenttype>text/plain</D:getcontenttype><D:getetag>&quot;1-2&quot;</D:getetag>\
        <D:getlastmodified>Sun, 02 Feb 2020 02:02:02 GMT</D:getlastmodified></D:prop>\
        <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n";
    for body in [
        "",
        " \r\n",
        "<propfind xmlns='DAV:'><allprop/></propfind>",
        "<?xml version='1.0'?><a:propfind xmlns:a='DAV:'><a:allprop/><a:include><a:x/></a:include></a:propfind>",
    ] {
        assert_eq!(answer(body, &file()), all, "{body}");
    }
    let collection = Resource {
        href: "/dav/x/".to_owned(),
        created: Some("2009-02-16T17:46:00Z".to_owned()),
        ..Resource::default()
    };
    assert_eq!(
        answer("<propfind xmlns='DAV:'><propname/></propfind>", &collection),
        "<D:response><D:href>/dav/x/</D:href><D:propstat><D:prop><D:resourcetype/><D:displayname/>\
         <D:creationdate/></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
    );
}

#[test]
fn unknown_properties_are_not_found() {
    let body = "<propfind xmlns='DAV:' xmlns:z='urn:a&amp;\"b'><prop><getcontentlength/><z:x/><quota/>\
        <y xmlns=''/><creationdate/></prop></propfind>";
    assert_eq!(
        answer(body, &file()),
        "<D:response><D:href>/dav/a%20b</D:href><D:propstat><D:prop><D:getcontentlength>7</D:getcontentlength>\
         </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat><D:propstat><D:prop>\
         <N:x xmlns:N=\"urn:a&amp;&quot;b\"/><D:quota/><y xmlns=\"\"/><D:creationdate/></D:prop>\
         <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>\n"
    );
    let none = answer("<propfind xmlns='DAV:'><prop/></propfind>", &file());
    assert!(
        none.contains("<D:prop></D:prop><D:status>HTTP/1.1 200 OK"),
        "{none}"
    );
}

#[test]
fn what_is_not_read() {
    let many = format!(
        "<propfind xmlns='DAV:'><prop>{}</prop></propfind>",
        (0..1000).fold(String::new(), |all, number| format!("{all}<a{number}/>"))
    );
    let deep = format!(
        "<propfind xmlns='DAV:'><prop>{}{}</prop></propfind>",
        "<a>".repeat(100),
        "</a>".repeat(100)
    );
    for (body, error) in [
        ("x", PropfindError::Xml),
        ("<propfind xmlns='DAV:'><allprop/>", PropfindError::Xml),
        (
            "<propfind xmlns='DAV:'><allprop></propfind>",
            PropfindError::Xml,
        ),
        ("<d:propfind><d:allprop/></d:propfind>", PropfindError::Xml),
        (
            "<propfind xmlns='DAV:' a a='<'><allprop/></propfind>",
            PropfindError::Xml,
        ),
        (
            "<propfind xmlns='DAV:'><prop><a\"b/></prop></propfind>",
            PropfindError::Xml,
        ),
        (
            "<propfind xmlns='DAV:'><prop><x xmlns='&bad;'/></prop></propfind>",
            PropfindError::Xml,
        ),
        (
            "<propfind xmlns='DAV:'><prop><x xmlns='&#1;'/></prop></propfind>",
            PropfindError::Xml,
        ),
        (
            "<!DOCTYPE p [<!ENTITY a 'b'>]><propfind xmlns='DAV:'><prop><x>&a;</x></prop></propfind>",
            PropfindError::Xml,
        ),
        (deep.as_str(), PropfindError::Xml),
        ("<propfind xmlns='DAV:'/>", PropfindError::Unknown),
        (
            "<propfind xmlns='DAV:'><include/></propfind>",
            PropfindError::Unknown,
        ),
        (
            "<propfind xmlns='DAV:'><allprop/><prop/></propfind>",
            PropfindError::Unknown,
        ),
        ("<propfind><allprop/></propfind>", PropfindError::Unknown),
        ("<html xmlns='DAV:'/>", PropfindError::Unknown),
        (
            "<propfind xmlns='DAV:'><allprop/></propfind><propfind xmlns='DAV:'><allprop/></propfind>",
            PropfindError::Unknown,
        ),
        (many.as_str(), PropfindError::TooMany),
    ] {
        assert_eq!(Wanted::parse(body.as_bytes()), Err(error), "{body}");
    }
    assert_eq!(Wanted::parse(b"\xff"), Err(PropfindError::Xml));
}
