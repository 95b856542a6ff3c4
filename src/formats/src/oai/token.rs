//! Resumption tokens: the position and the end of a list.
//!
//! A token has all state, so the server stores none and no token expires. An invented token starts a list at
//! another position, as `from` and `until` can.

use ibi::Ibi;

use super::{FORMAT, OaiFormat, collection_in, spec_of};

/// The last second with a year of four digits.
const LAST_SECOND: i64 = 253_402_300_799;

/// The position where a list continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// The datestamp of the last record in the list so far, in Unix seconds.
    pub datestamp: i64,
    /// Its local name.
    pub name: String,
    /// The end of the list, in Unix seconds, if it has one.
    pub until: Option<i64>,
    /// The format of the records.
    pub format: OaiFormat,
    /// The collection to which the list is limited.
    pub collection: Option<String>,
    /// The number of records that have been listed so far.
    pub listed: u64,
    /// The number of records of the whole list when it began; 0 if that is not known.
    pub size: u64,
}

impl ListPosition {
    /// The text of the token.
    #[must_use]
    pub fn to_token(&self) -> String {
        let until = self.until.map(|until| until.to_string());
        // A token without a format is one for the format that all services have.
        let format = match self.format {
            FORMAT => String::new(),
            format => format!("{}!", format.prefix()),
        };
        let set = self.collection.as_deref().map(spec_of);
        let set = set.map_or_else(String::new, |set| format!("{set};"));
        format!(
            "{set}{format}{},{},{},{},{}",
            until.unwrap_or_default(),
            self.datestamp,
            self.name,
            self.listed,
            self.size
        )
    }

    /// Parses a token; None where it cannot be one of ours.
    #[must_use]
    pub fn from_token(token: &str) -> Option<ListPosition> {
        let (collection, token) = match token.split_once(';') {
            Some((set, token)) => (Some(collection_in(set)?), token),
            None => (None, token),
        };
        let (format, token) = match token.split_once('!') {
            Some((word, token)) => {
                let format = OaiFormat::of_prefix(word).filter(|format| *format != FORMAT)?;
                (format, token)
            }
            None => (FORMAT, token),
        };
        let (until, rest) = token.split_once(',')?;
        let (datestamp, rest) = rest.split_once(',')?;
        let parts: Vec<&str> = rest.split(',').collect();
        let (name, listed, size) = match parts[..] {
            [name, listed, size] => (name, count(listed)?, count(size)?),
            // One from before a change of this service.
            [name] => (name, 0, 0),
            _ => return None,
        };
        let second = |text: &str| {
            let second = text.parse::<i64>().ok()?;
            let is_written_so = second.to_string() == text;
            ((0..=LAST_SECOND).contains(&second) && is_written_so).then_some(second)
        };
        Ibi::parse(name).ok()?;
        Some(ListPosition {
            datestamp: second(datestamp)?,
            name: name.to_owned(),
            until: match until {
                "" => None,
                until => Some(second(until)?),
            },
            format,
            collection,
            listed,
            size,
        })
    }
}

/// A number in its one spelling.
fn count(text: &str) -> Option<u64> {
    let count = text.parse::<u64>().ok()?;
    (count.to_string() == text).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back() {
        for (name, until) in [
            ("sid.inpe.br/mtc-m18@80/2009/02.16.17.46", None),
            ("8JMKD3MGP8W/34PGRBS", Some(0)),
        ] {
            let position = ListPosition {
                datestamp: 1_795_305_600,
                name: name.to_owned(),
                until,
                format: if until.is_some() {
                    OaiFormat::Datacite
                } else {
                    FORMAT
                },
                collection: until.is_some().then(|| "a.b/c!d@80".to_owned()),
                listed: 100,
                size: 12_345,
            };
            let token = position.to_token();
            assert_eq!(ListPosition::from_token(&token), Some(position), "{token}");
        }
        for token in [
            "oai_dc!,1,8JMKD3MGP8W/34PGRBS,1,2",
            "csl!,1,8JMKD3MGP8W/34PGRBS,1,2",
            "!,1,8JMKD3MGP8W/34PGRBS,1,2",
            "a~4;,1,8JMKD3MGP8W/34PGRBS,1,2",
            "",
            ",",
            ",,",
            ",1,",
            ",1,x",
            ",-1,8JMKD3MGP8W/34PGRBS,1,2",
            ",+1,8JMKD3MGP8W/34PGRBS,1,2",
            ",01,8JMKD3MGP8W/34PGRBS,1,2",
            "x,1,8JMKD3MGP8W/34PGRBS,1,2",
            ",99999999999999999999,8JMKD3MGP8W/34PGRBS,1,2",
            ",253402300800,8JMKD3MGP8W/34PGRBS,1,2",
            ",1,8JMKD3MGP8W/34PGRBS,1",
            ",1,8JMKD3MGP8W/34PGRBS,1,2,3",
            ",1,8JMKD3MGP8W/34PGRBS,-1,2",
            ",1,8JMKD3MGP8W/34PGRBS,01,2",
            ",1,8JMKD3MGP8W/34PGRBS,",
            ",1,8JMKD3MGP8W/34PGRBS' OR 1=1",
        ] {
            assert_eq!(ListPosition::from_token(token), None, "{token}");
        }
    }
}
