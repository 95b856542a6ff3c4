//! The Archive's own facts, `archive.ibi`.

use ibifs::outside::archive::Facts;

use super::sentence;

/// Facts that can be read are written as what reads back to them.
pub fn check(data: &[u8]) {
    let facts = match Facts::parse(data) {
        Ok(facts) => facts,
        Err(error) => return sentence(&error),
    };
    let text = facts.to_text();
    let again = Facts::parse(text.as_bytes()).expect("facts as they are written");
    assert_eq!(again.to_text(), text);
    assert_eq!(
        (&again.host, again.port, again.ip, again.ip_port),
        (&facts.host, facts.port, facts.ip, facts.ip_port)
    );
    assert_eq!(again.granularity, facts.granularity);
    assert_eq!(again.service, facts.service);
    if let Err(error) = facts.rep_prefix() {
        sentence(&error);
    }
    assert!(!facts.ibip_prefix().to_string().is_empty());
}
