//! The tokens that authorize other Archives to transfer items to this one over HTTP.

use sha2::Digest as _;

use crate::formats::base_url::BaseUrl;
use crate::formats::item::Names;
use ibi::Ibi;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The shortest accepted token: 128 bits in hexadecimal digits.
const SHORTEST: usize = 32;

/// The tokens of a file: one per line, optionally followed by the Archive that has it, by its URL or by the
/// identifier of its service.
#[derive(Clone, Debug)]
pub struct Tokens(Vec<StoredToken>);

/// A stored token: its digest and its holder.
#[derive(Clone, Debug)]
struct StoredToken {
    digest: [u8; 32],
    giver: Giver,
}

/// The holder of a token, and the originals that are accepted with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Giver {
    /// May send copies only: the token names no Archive.
    Copies,
    /// The Archive at this URL, which is queried before an original is accepted from it.
    Asked(String),
    /// The Archive with this service, whose claims about its own originals are trusted.
    Trusted(Names),
}

impl Giver {
    /// Whether originals are accepted of the Archive that `from` identifies by its service.
    #[must_use]
    pub fn may_give_for(&self, from: &Names) -> bool {
        match self {
            Giver::Copies => false,
            // The Archive at the URL is queried when an original is transferred.
            Giver::Asked(_) => true,
            Giver::Trusted(service) => service.matches(from),
        }
    }
}

/// The reason why a file of tokens is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokensError(Message);

impl Localize for TokensError {
    fn message(&self) -> Message {
        self.0.clone()
    }
}

display_message!(TokensError);

impl std::error::Error for TokensError {}

impl Tokens {
    /// Parses a file of tokens. Empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// A file without tokens; a token that is too short or has characters other than printable ASCII; text
    /// after a token that is neither a URL nor an identifier.
    pub fn parse(text: &str) -> Result<Tokens, TokensError> {
        let mut known = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let fault =
                |what: Message| TokensError(message!("line {line}: {what}", line = at + 1, what));
            let words: Vec<&str> = line.split_whitespace().collect();
            let (token, giver) = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [token] => (token, Giver::Copies),
                [token, url] if url.contains("://") => match BaseUrl::parse(url) {
                    Ok(url) => (token, Giver::Asked(url.to_string())),
                    Err(error) => return Err(fault(error.message())),
                },
                [token, ref services @ ..] => match names(services) {
                    Some(service) => (token, Giver::Trusted(service)),
                    None => {
                        return Err(fault(message!(
                            "write a token, or a token and a URL https://host, or a token and the \
                             identifier of an Archive's service"
                        )));
                    }
                },
            };
            if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(fault(message!(
                    "a token has 32 or more printable ASCII characters; 'openssl rand -hex 32' prints one"
                )));
            }
            known.push(StoredToken {
                digest: sha2::Sha256::digest(token.as_bytes()).into(),
                giver,
            });
        }
        if known.is_empty() {
            Err(TokensError(message!("it contains no token")))
        } else {
            Ok(Tokens(known))
        }
    }

    /// The holder of a token, in a time that does not depend on the known tokens.
    #[must_use]
    pub fn giver(&self, shown: &str) -> Option<Giver> {
        let digest: [u8; 32] = sha2::Sha256::digest(shown.as_bytes()).into();
        let mut found = None;
        for known in &self.0 {
            let pairs = digest.iter().zip(known.digest);
            let difference = pairs.fold(0, |sum, (one, other)| sum | (one ^ other));
            if std::hint::black_box(difference) == 0 {
                found = Some(known.giver.clone());
            }
        }
        found
    }
}

/// The names of a service, from one or both forms of its identifier.
fn names(forms: &[&str]) -> Option<Names> {
    let forms = forms.iter().map(|form| Ibi::parse(form));
    Names::collect(forms.collect::<Result<Vec<Ibi>, _>>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_known_again() {
        let (one, two) = ("a".repeat(32), "b".repeat(40));
        let three = "c".repeat(32);
        let service = "sid.inpe.br/mtc-m18@80/2008/03.17.15.17";
        let text = format!("# ours\n{one}\n\n  {two} http://127.0.0.1:8080/\n{three} {service}\n");
        let tokens = Tokens::parse(&text).expect("it is good");
        assert_eq!(tokens.giver(&one), Some(Giver::Copies));
        let url = "http://127.0.0.1:8080".to_owned();
        assert_eq!(tokens.giver(&two), Some(Giver::Asked(url)));
        let of = |text: &str| Names::from(Ibi::parse(text).expect(text));
        let giver = tokens.giver(&three).expect("it is known");
        assert!(giver.may_give_for(&of(service)));
        assert!(!giver.may_give_for(&of("sid.inpe.br/mtc-m18@80/2008/03.17.15.18")));
        assert!(!Giver::Copies.may_give_for(&of(service)));
        let others = [
            String::new(),
            one[1..].to_owned(),
            one.to_uppercase(),
            format!("{one} "),
        ];
        for other in others {
            assert_eq!(tokens.giver(&other), None, "{other}");
        }
        let bad = [
            String::new(),
            "#\n".to_owned(),
            "short\n".to_owned(),
            format!("{one} ftp://x\n"),
            format!("{one} http://x y\n"),
        ];
        for bad in bad {
            assert!(Tokens::parse(&bad).is_err(), "{bad}");
        }
    }
}
