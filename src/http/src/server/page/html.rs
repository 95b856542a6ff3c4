//! Additions to maud, which writes elements and escapes texts and attributes: invisible characters are shown
//! by their numbers, and the result is XML as well as HTML.

use maud::{Markup, html};
use serde_json::Value;

/// A link with a text of any origin.
pub fn link(href: &str, text: &str) -> Markup {
    html! { a href=(href) { bdi { (text) } } }
}

/// A text in an element or an attribute, for markup that maud does not write.
pub fn escaped(text: &str) -> String {
    html! { (text) }.into_string().replace('\'', "&#39;")
}

/// Inline elements. A line ends after the end tag of any other element.
const INLINE: [&str; 6] = ["a", "bdi", "time", "code", "strong", "small"];

/// Markup as it is sent. Every page passes through this, whatever its texts are: control characters and those
/// that change the direction of writing are shown by their numbers. No element is void, so the markup is XML
/// too.
pub fn finished(markup: &Markup) -> String {
    let mut text = String::new();
    let mut rest = markup.0.as_str();
    while let Some(at) = rest.find("</") {
        // Texts contain no `<`, since it is escaped.
        let end = rest[at..].find('>').map_or(rest.len(), |end| at + end + 1);
        show(&mut text, &rest[..end]);
        if !INLINE.contains(&rest[at + 2..end].trim_end_matches('>')) {
            text.push('\n');
        }
        rest = &rest[end..];
    }
    show(&mut text, rest);
    text
}

fn show(to: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            // maud writes attributes in double quotes, so a single quote is always part of a text.
            '\'' => to.push_str("&#39;"),
            character if is_unseen(character) => to.extend(character.escape_default()),
            character => to.push(character),
        }
    }
}

/// JSON, whose `<`, `>` and `&` are escaped, as the content of an element. Characters that are not seen are
/// escaped too.
pub fn data(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_unseen(character) && character != '\n' {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Puts the prefix of the service before the paths in the attributes of a finished markup. A text cannot have any,
/// since its quotation marks are escaped.
pub(super) fn with_prefix(prefix: &str, markup: String) -> String {
    if prefix.is_empty() {
        return markup;
    }
    let mut markup = markup;
    for attribute in ["href", "src", "action"] {
        let begin = format!(" {attribute}=\"/");
        markup = markup.replace(&begin, &format!(" {attribute}=\"{prefix}/"));
    }
    markup
}

/// Puts the prefix of the service before the paths that a JSON value has in the members `url` and `..._url`.
pub(super) fn with_prefix_in_json(prefix: &str, value: &mut Value) {
    match value {
        Value::Array(values) => {
            for value in values {
                with_prefix_in_json(prefix, value);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text)
                        if (name == "url" || name.ends_with("_url")) && text.starts_with('/') =>
                    {
                        text.insert_str(0, prefix);
                    }
                    value => with_prefix_in_json(prefix, value),
                }
            }
        }
        _ => {}
    }
}

/// Control characters, invisible format characters, and those that XML cannot represent.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// A name as text. Bytes that are not UTF-8 are shown by their numbers.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_become_markup() {
        let (title, text) = ("\"><b a='", "</p><script>&\n\u{1b}[0m\u{202e}\u{feff}São");
        assert_eq!(
            finished(&html! { p title=(title) { (text) } }),
            "<p title=\"&quot;&gt;&lt;b a=&#39;\">\
             &lt;/p&gt;&lt;script&gt;&amp;\\n\\u{1b}[0m\\u{202e}\\u{feff}São</p>\n"
        );
    }

    #[test]
    fn a_line_ends_after_each_block() {
        let markup = html! { dl { dt { "a" } dd { (link("/b", "c")) " " code { "d" } } } };
        assert_eq!(
            finished(&markup),
            "<dl><dt>a</dt>\n<dd><a href=\"/b\"><bdi>c</bdi></a> <code>d</code></dd>\n</dl>\n"
        );
    }

    #[test]
    fn names_that_are_not_text() {
        assert_eq!(shown("a/São".as_bytes()), "a/São");
        assert_eq!(
            shown(b"Relat\xf3rio \xff\xfe.pdf"),
            "Relat\\xf3rio \\xff\\xfe.pdf"
        );
    }
}
