use super::*;

const LIST: &str = "archiveaddress mtc-m16c.sid.inpe.br ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}
archiveaddress 150.163.34.243:8080 ibi.archiveservice {rep example.org/b/2020/01.01.01.01 ibip 8JMKD3MGP8W/34PGRBS}
";

fn line(address: &str, number: usize) -> String {
    format!(
        "archiveaddress {address} ibi.archiveservice {{rep example.org/s{number}/2020/01.01.01.01}}\n"
    )
}

#[track_caller]
fn bad(list: &str, admitted: Admitted, sentence: &str) {
    let error = parse(list.as_bytes(), admitted).expect_err(list);
    assert_eq!(error.to_string(), sentence);
}

#[test]
fn a_list_is_read_as_it_is_written() {
    let archives = parse(LIST.as_bytes(), Admitted::Public).expect("a list");
    assert_eq!(archives.len(), 2);
    assert_eq!(written(&archives), LIST);
    assert_eq!(archives[1].url.short(), "150.163.34.243:8080");
    assert_eq!(
        archives[0].service.preferred(),
        "sid.inpe.br/mtc-m18@80/2008/03.17.15.17"
    );
    assert_eq!(parse(b"", Admitted::Public), Ok(Vec::new()));
    let list = "archiveaddress a.org archiveurl https://a.org/x ibi.archiveservice {rep example.org/b/2020/01.01.01.01}\n";
    let archives = parse(list.as_bytes(), Admitted::Public).expect("a list");
    assert_eq!(archives[0].url.to_string(), "https://a.org/x");
    assert_eq!(written(&archives), list);
}

#[test]
fn line_ends_comments_order_and_other_pairs() {
    let list = "# Archives\r\n\r\n  ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17} \
                ibi.platformsoftware {} archiveaddress MTC-m16c.sid.inpe.br\r\n";
    let archives = parse(list.as_bytes(), Admitted::Public).expect("a list");
    assert_eq!(
        written(&archives),
        LIST.lines().next().expect("a line").to_owned() + "\n"
    );
}

#[test]
#[rustfmt::skip] // one case, one line
fn lists_that_are_refused() {
    let good = line("a.example.org", 1);
    let all = Admitted::All;
    bad(&format!("{good}\nx"), all, "line 3: line 1, column 2 of the list of pairs: expected a space and the value of the pair, found the end");
    bad("<html> <p>", all, "line 1: the pair archiveaddress is missing");
    bad("archiveaddress a", all, "line 1: the pair ibi.archiveservice is missing");
    bad(&format!("archiveaddress b {good}"), all, "line 1: the pair archiveaddress is there twice");
    bad(&line("http://a/", 1), all, "line 1: 'http://a/' is not an archiveaddress; write host or host:port, without http://");
    bad(&format!("{good}{}", line("b", 1)), all, "line 2: it has the same address or service as line 1");
    bad(&format!("{good}{}", line("A.example.org:80", 2)), all, "line 2: it has the same address or service as line 1");
    for address in ["127.0.0.1:8080", "10.1.2.3", "[::1]:80", "[::ffff:192.168.0.1]"] {
        assert!(parse(line(address, 1).as_bytes(), all).is_ok());
        bad(&line(address, 1), Admitted::Public, &format!("line 1: {address} is not a public address"));
    }
    let error = parse(b"archiveaddress a ibi.archiveservice x", all).expect_err("no names");
    assert!(error.to_string().starts_with("line 1: "), "{error}");
}

#[test]
fn lists_are_bounded() {
    let many = |count: usize| -> String {
        let lines = (0..count).map(|number| line(&format!("a{number}"), number));
        lines.collect()
    };
    let read = |list: &str| parse(list.as_bytes(), Admitted::All).map(|list| list.len());
    assert_eq!(read(&many(MOST_ARCHIVES)), Ok(MOST_ARCHIVES));
    let sentence = |list: &str| read(list).expect_err("a list that is refused").to_string();
    let more = many(MOST_ARCHIVES + 1);
    assert_eq!(sentence(&more), "the list has more than 4096 Archives");
    assert_eq!(read(&"#\n".repeat(MOST_LINES)), Ok(0));
    let lines = "#\n".repeat(MOST_LINES + 1);
    assert_eq!(sentence(&lines), "the list has more than 8192 lines");
    let long = format!("\n#{}", "x".repeat(LONGEST_LINE));
    assert_eq!(sentence(&long), "line 2: the line has more than 1024 bytes");
    let long = "x".repeat(LONGEST_LIST + 1);
    assert_eq!(sentence(&long), "the list has more than 1048576 bytes");
}
