//! What `-o` and the user's languages say.

use ibifs::outside::fuse::mount::Settings;

use super::{sentence, text, two_lines};

/// A line of options, and one that is the value of every variable of the environment.
pub fn check(data: &[u8]) {
    let (first, second) = two_lines(data);
    let (Some(first), Some(second)) = (text(first), text(second)) else {
        return;
    };
    let options: Vec<String> = first.split('\r').map(str::to_owned).collect();
    match Settings::parse(&options, |_| Some(second.to_owned())) {
        Ok(settings) => {
            assert!(settings.languages.len() <= data.len());
            // Given one after another or in one word, they mean the same.
            let joined = Settings::parse(&[options.join(",")], |_| Some(second.to_owned()));
            let joined = joined.expect("the same options in one word");
            assert_eq!(format!("{joined:?}"), format!("{settings:?}"));
        }
        Err(error) => sentence(&error),
    }
}
