//! The tokens by which an Archive knows who may hand items over to it over HTTP.

use std::fmt;

use sha2::Digest as _;

/// The shortest token that is taken: 128 bits in hexadecimal digits.
const SHORTEST: usize = 32;

/// The tokens of a file: one a line, and behind it, if there is one, the URL of the Archive that has it.
#[derive(Clone, Debug)]
pub struct Tokens(Vec<Known>);

/// What is kept of a token: enough to know it again.
#[derive(Clone, Debug)]
struct Known {
    digest: [u8; 32],
    giver: Option<String>,
}

/// Whoever has shown a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Giver {
    /// Where its own service is asked before an original is taken from it; None where it is believed.
    pub url: Option<String>,
}

/// Why a file of tokens is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokensError(String);

impl fmt::Display for TokensError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TokensError {}

impl Tokens {
    /// Reads a file of tokens; empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// No token, one that is too short or has other characters than printable ASCII, something behind it
    /// that is no URL.
    pub fn parse(text: &str) -> Result<Tokens, TokensError> {
        let mut known = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let fault = |what: &str| TokensError(format!("line {}: {what}", at + 1));
            let words: Vec<&str> = line.split_whitespace().collect();
            let (token, giver) = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [token] => (token, None),
                [token, url] if url.starts_with("http://") => (token, Some(url)),
                _ => {
                    return Err(fault(
                        "write a token, or a token and a URL http://host[:port]",
                    ));
                }
            };
            if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(fault(
                    "a token has 32 or more printable characters of ASCII, such as \
                     'openssl rand -hex 32' makes",
                ));
            }
            known.push(Known {
                digest: sha2::Sha256::digest(token.as_bytes()).into(),
                giver: giver.map(|url| url.trim_end_matches('/').to_owned()),
            });
        }
        match known.is_empty() {
            true => Err(TokensError("there is no token in it".to_owned())),
            false => Ok(Tokens(known)),
        }
    }

    /// Who has a token. How long this takes tells nothing of the tokens that are known.
    #[must_use]
    pub fn giver(&self, shown: &str) -> Option<Giver> {
        let digest: [u8; 32] = sha2::Sha256::digest(shown.as_bytes()).into();
        let mut found = None;
        for known in &self.0 {
            let pairs = digest.iter().zip(known.digest);
            let difference = pairs.fold(0, |sum, (one, other)| sum | (one ^ other));
            if std::hint::black_box(difference) == 0 {
                found = Some(Giver {
                    url: known.giver.clone(),
                });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_known_again() {
        let (one, two) = ("a".repeat(32), "b".repeat(40));
        let text = format!("# ours\n{one}\n\n  {two} http://127.0.0.1:8080/\n");
        let tokens = Tokens::parse(&text).expect("it is good");
        assert_eq!(tokens.giver(&one), Some(Giver { url: None }));
        let url = Some("http://127.0.0.1:8080".to_owned());
        assert_eq!(tokens.giver(&two), Some(Giver { url }));
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
