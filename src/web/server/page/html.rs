//! Writing HTML that is XML too: every text and attribute is escaped on its way in, and there is no
//! other way in.

/// A piece of a page.
#[derive(Debug, Default)]
pub(in crate::web::server) struct Html(String);

impl Html {
    /// An element, with what is written inside it.
    pub(in crate::web::server) fn tag(
        &mut self,
        name: &'static str,
        attributes: &[(&'static str, &str)],
        inside: impl FnOnce(&mut Html),
    ) {
        self.open(name, attributes);
        self.0.push('>');
        inside(self);
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
        if !["a", "bdi", "time", "code", "strong", "small"].contains(&name) {
            self.0.push('\n');
        }
    }

    /// An element that never has anything inside.
    pub(in crate::web::server) fn void(
        &mut self,
        name: &'static str,
        attributes: &[(&'static str, &str)],
    ) {
        self.open(name, attributes);
        self.0.push_str(" />\n");
    }

    fn open(&mut self, name: &'static str, attributes: &[(&'static str, &str)]) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
    }

    /// An element that holds a text alone.
    pub(in crate::web::server) fn line(&mut self, name: &'static str, text: &str) {
        self.tag(name, &[], |html| html.text(text));
    }

    /// A link.
    pub(in crate::web::server) fn link(&mut self, href: &str, text: &str) {
        self.tag("a", &[("href", href)], |html| {
            html.tag("bdi", &[], |html| html.text(text));
        });
    }

    /// A text of any origin. What is not seen, or would turn the text around, is shown by its
    /// number.
    pub(in crate::web::server) fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                character if is_unseen(character) => {
                    self.0.extend(character.escape_default());
                }
                character => self.0.push(character),
            }
        }
    }

    /// A style sheet: the one thing that is not escaped, and known beforehand.
    pub(in crate::web::server) fn style(&mut self, sheet: &'static str) {
        self.0.push_str("<style>");
        self.0.push_str(sheet);
        self.0.push_str("</style>\n");
    }

    /// The whole, as a document.
    pub(in crate::web::server) fn document(self) -> String {
        format!("<!DOCTYPE html>\n{}", self.0)
    }
}

/// Control characters, those that direct the writing or join it unseen, and what XML cannot carry.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// A name of bytes, as a text: what is not UTF-8 is shown by its number.
pub(in crate::web::server) fn shown(name: &[u8]) -> String {
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
    fn nothing_gets_out_of_a_text() {
        let mut html = Html::default();
        html.tag("p", &[("title", "\"><b a='")], |html| {
            html.text("</p><script>&\n\u{1b}[0m\u{202e}\u{feff}São");
        });
        assert_eq!(
            html.document(),
            "<!DOCTYPE html>\n<p title=\"&quot;&gt;&lt;b a=&#39;\">\
             &lt;/p&gt;&lt;script&gt;&amp;\\n\\u{1b}[0m\\u{202e}\\u{feff}São</p>\n"
        );
    }

    #[test]
    fn names_that_are_no_text() {
        assert_eq!(shown("a/São".as_bytes()), "a/São");
        assert_eq!(
            shown(b"Relat\xf3rio \xff\xfe.pdf"),
            "Relat\\xf3rio \\xff\\xfe.pdf"
        );
    }
}
