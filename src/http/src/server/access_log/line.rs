//! A line of the access log. Whatever a client sends stays on its line, and shows nothing else on a terminal.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderName, HeaderValue, Request, header};

use ibi::Timestamp;

/// Parameters of queries whose values are secret.
const SECRET: [&str; 3] = ["password", "newpassword", "registrationkey"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// The combined log format of Apache and nginx.
    #[default]
    Combined,
    /// A JSON object.
    Json,
}

/// The known facts of a request.
#[derive(Debug)]
pub struct Line {
    client: IpAddr,
    at: Duration,
    method: String,
    target: String,
    protocol: String,
    referer: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    /// The status of the answer.
    pub status: u16,
    /// The time that the answer took.
    pub taken: Duration,
}

impl Line {
    /// The line of a request that has just arrived.
    pub fn begin<B>(request: &Request<B>, client: IpAddr) -> Line {
        let value = |name: HeaderName| request.headers().get(name).cloned();
        Line {
            client,
            at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
            method: request.method().to_string(),
            target: without_secrets(&request.uri().to_string()),
            protocol: format!("{:?}", request.version()),
            referer: value(header::REFERER),
            agent: value(header::USER_AGENT),
            status: 0,
            taken: Duration::ZERO,
        }
    }

    /// The line, with its end, for an answer of so many bytes.
    pub fn written(&self, format: AccessLogFormat, bytes: u64) -> String {
        match format {
            AccessLogFormat::Combined => self.combined(bytes),
            AccessLogFormat::Json => self.json(bytes),
        }
    }

    fn combined(&self, bytes: u64) -> String {
        let mut text = format!("{} - - [{}] \"", self.client, self.day_and_time());
        escape_bytes(&mut text, self.method.as_bytes());
        text.push(' ');
        escape_bytes(&mut text, self.target.as_bytes());
        text.push(' ');
        text.push_str(&self.protocol);
        // Writing to a string does not fail.
        let _ = write!(text, "\" {} {bytes}", self.status);
        for value in [&self.referer, &self.agent] {
            text.push_str(" \"");
            escape_bytes(
                &mut text,
                value.as_ref().map_or(b"-", HeaderValue::as_bytes),
            );
            text.push('"');
        }
        text.push('\n');
        text
    }

    fn json(&self, bytes: u64) -> String {
        let seconds = self.at.as_secs().cast_signed();
        let time = Timestamp::from_unix(seconds, self.at.subsec_millis() * 1_000_000).to_rfc3339();
        let mut text = format!("{{\"time\":\"{time}\",\"client\":\"{}\"", self.client);
        let known = |value: &Option<HeaderValue>| {
            let bytes = value.as_ref().map(HeaderValue::as_bytes)?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        for (name, value) in [
            ("method", Some(self.method.clone())),
            ("target", Some(self.target.clone())),
            ("protocol", Some(self.protocol.clone())),
            ("referer", known(&self.referer)),
            ("user_agent", known(&self.agent)),
        ] {
            let _ = write!(text, ",\"{name}\":");
            match value {
                Some(value) => escape_json(&mut text, &value),
                None => text.push_str("null"),
            }
        }
        let (status, taken) = (self.status, self.taken);
        let _ = writeln!(
            text,
            ",\"status\":{status},\"bytes\":{bytes},\"seconds\":{}.{:06}}}",
            taken.as_secs(),
            taken.subsec_micros()
        );
        text
    }

    /// The time in UTC, as in `23/Nov/2026:11:07:15 +0000`.
    fn day_and_time(&self) -> String {
        let time = Timestamp::from_unix(self.at.as_secs().cast_signed(), 0).to_rfc3339();
        let month = time.get(5..7).and_then(|month| month.parse::<usize>().ok());
        let month = month.and_then(|month| MONTHS.get(month.wrapping_sub(1)));
        match (time.get(0..4), month, time.get(8..10), time.get(11..19)) {
            (Some(year), Some(month), Some(day), Some(clock)) => {
                format!("{day}/{month}/{year}:{clock} +0000")
            }
            _ => time,
        }
    }
}

/// The target of a request, with `-` in place of passwords and keys in the query.
fn without_secrets(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=-"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Whether a parameter is secret, also if its name is percent-encoded.
fn is_secret(name: &str) -> bool {
    let decoded = ibi::pairs::percent_decode(name);
    SECRET
        .iter()
        .any(|secret| decoded.eq_ignore_ascii_case(secret.as_bytes()))
}

/// Appends bytes, those that are not printable ASCII, quotation marks and backslashes as `\xHH`, like nginx.
fn escape_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=31 | 127.. => {
                let _ = write!(text, "\\x{byte:02X}");
            }
            printable => text.push(char::from(*printable)),
        }
    }
}

/// Appends a JSON string, with all but printable ASCII as `\uHHHH`.
fn escape_json(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                text.push('\\');
                text.push(character);
            }
            ' '..='~' => text.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let request = Request::builder()
            .uri("/a%0Ab?password=x&p%61ssword=y&z=1")
            .header(
                "user-agent",
                HeaderValue::from_bytes(b"\"a\\\xff\xc2\x9b\tb").expect("a value"),
            );
        let request = request.body(()).expect("a request");
        let mut line = Line::begin(&request, "2001:db8::1".parse().expect("an address"));
        line.at = Duration::from_millis(1_795_433_945_250);
        line.taken = Duration::from_micros(1_500_020);
        line.status = 200;
        line
    }

    #[test]
    fn the_combined_form_is_that_of_web_servers() {
        assert_eq!(
            line().written(AccessLogFormat::Combined, 7),
            "2001:db8::1 - - [23/Nov/2026:11:39:05 +0000] \"GET /a%0Ab?password=-&p%61ssword=-&z=1 HTTP/1.1\" 200 7 \
             \"-\" \"\\x22a\\x5C\\xFF\\xC2\\x9B\\x09b\"\n"
        );
    }

    #[test]
    fn json_is_ascii() {
        assert_eq!(
            line().written(AccessLogFormat::Json, 7),
            "{\"time\":\"2026-11-23T11:39:05.25Z\",\"client\":\"2001:db8::1\",\"method\":\"GET\",\
             \"target\":\"/a%0Ab?password=-&p%61ssword=-&z=1\",\"protocol\":\"HTTP/1.1\",\"referer\":null,\
             \"user_agent\":\"\\\"a\\\\\\ufffd\\u009b\\u0009b\",\"status\":200,\"bytes\":7,\"seconds\":1.500020}\n"
        );
    }
}
