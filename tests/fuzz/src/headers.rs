//! Headers of requests: conditions, ranges, preferences, and the client behind a proxy.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use ibifs::outside::web::texts::{Headers, Sent, client, log_lines};

use super::{text, two_lines};

const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));

/// The first line is the target of the request, the others are its headers.
pub fn check(data: &[u8]) {
    let (target, lines) = two_lines(data);
    let headers = Headers::of(lines);
    for length in [0, 1, 1000, u64::MAX] {
        if let Sent::Part(start, end) = headers.sent(length, 784_111_777) {
            assert!(start < end && end <= length, "{start} to {end} of {length}");
        }
    }
    // What another peer than a proxy says is not believed.
    assert_eq!(client(headers.map(), PEER, &[PROXY]), (PEER, vec![PEER]));
    let (reader, way) = client(headers.map(), PROXY, &[PROXY]);
    assert_eq!(way.last(), Some(&PROXY));
    assert!(way.contains(&reader), "{reader} of {way:?}");
    let languages = headers.languages();
    let different: HashSet<String> = languages.iter().map(ToString::to_string).collect();
    assert!(different.len() == languages.len() && languages.len() <= 64);
    let _ = headers.description();
    let Some(target) = text(target) else {
        return;
    };
    let Some([combined, json]) = log_lines(headers.map(), target, reader) else {
        return;
    };
    for line in [&combined, &json] {
        let line = line.strip_suffix('\n').expect("a line");
        assert!(
            line.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{line}"
        );
    }
    let read: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(read["target"].is_string() && read.as_object().is_some_and(|object| object.len() > 8));
    // Three quoted texts, in which no quotation mark is.
    assert_eq!(combined.matches('"').count(), 6, "{combined}");
}
