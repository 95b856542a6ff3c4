//! The feature `serde`: every value is the text that it prints, and is parsed when it is read.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use crate::distributor::Granularity;
use crate::relation::{Language, MetadataFormat, Modifier};
use crate::{AliasPair, Ibi, Ibip, IbipPrefix, Rep, RepPrefix, Timestamp};

/// Both traits for a type, by its parser and its printer.
macro_rules! as_text {
    ($($type:ty: $parse:path, $print:expr;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let print: fn(&$type) -> String = $print;
                serializer.serialize_str(&print(self))
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let text = String::deserialize(deserializer)?;
                $parse(&text).map_err(D::Error::custom)
            }
        }
    )*};
}

as_text! {
    Ibi: Ibi::parse, ToString::to_string;
    Rep: Rep::parse, ToString::to_string;
    Ibip: Ibip::parse, ToString::to_string;
    RepPrefix: RepPrefix::parse, ToString::to_string;
    IbipPrefix: IbipPrefix::parse, ToString::to_string;
    AliasPair: AliasPair::parse, ToString::to_string;
    Timestamp: Timestamp::parse_rfc3339, Timestamp::to_rfc3339;
    Granularity: Granularity::parse, ToString::to_string;
    Language: Language::parse, ToString::to_string;
    MetadataFormat: MetadataFormat::parse, ToString::to_string;
    Modifier: Modifier::parse, ToString::to_string;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn both<T: Serialize + for<'de> Deserialize<'de>>(json: &str) {
        let value: T = serde_json::from_str(json).expect(json);
        assert_eq!(serde_json::to_string(&value).expect(json), json);
    }

    #[test]
    fn values_are_the_texts_that_they_print() {
        both::<Ibi>("\"sid.inpe.br/MTC-m18@80/2009/02.16.17.46\"");
        both::<Rep>("\"sid.inpe.br/mtc-m18/2009/02.16.17.46\"");
        both::<Ibip>("\"8JMKD3MGP8W/34PGRBS\"");
        both::<RepPrefix>("\"sid.inpe.br/mtc-m18\"");
        both::<IbipPrefix>("\"8JMKD3MGP8W\"");
        both::<AliasPair>("\"6RPa7umaZ/UaJFT\"");
        both::<Timestamp>("\"2009-02-16T17:46:00.05Z\"");
        both::<Granularity>("\"1/1000\"");
        both::<Language>("\"pt-BR\"");
        both::<MetadataFormat>("\"oai_dc\"");
        both::<Modifier>("\"!+(pt):(oai_dc)\"");
    }

    #[test]
    fn a_bad_text_is_refused_with_the_parsers_sentence() {
        let error = serde_json::from_str::<Rep>("\"a.b/c/2009/13.01.00.00\"");
        let sentence = error.expect_err("no month 13").to_string();
        assert!(
            sentence.starts_with("month '13' at byte 12 of rep"),
            "{sentence}"
        );
    }
}
