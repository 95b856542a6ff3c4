//! XML as descriptions have it: an element a line, indented, and every value escaped.

use quick_xml::escape::escape;

/// The namespace of `xsi:schemaLocation`.
pub(super) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A document, or a part of one, as it is written.
#[derive(Default)]
pub(super) struct Xml {
    written: String,
    depth: usize,
}

impl Xml {
    /// An element of this tag, which may have attributes that need no escape, and of what is written in it.
    pub(super) fn element(tag: &str, inner: impl FnOnce(&mut Xml)) -> String {
        let mut xml = Xml::default();
        xml.group(tag, inner);
        xml.written
    }

    /// An element with its attributes and its text.
    pub(super) fn text(&mut self, name: &str, attributes: &[(&str, &str)], value: &str) {
        self.indent();
        self.written.push_str(&format!("<{name}"));
        for (attribute, value) in attributes {
            let attribute = format!(" {attribute}=\"{}\"", escape(*value));
            self.written.push_str(&attribute);
        }
        self.written
            .push_str(&format!(">{}</{name}>\n", escape(value)));
    }

    /// An element for each value.
    pub(super) fn texts<'a>(&mut self, name: &str, values: impl IntoIterator<Item = &'a str>) {
        for value in values {
            self.text(name, &[], value);
        }
    }

    /// An element with others in it; nothing if there are none.
    pub(super) fn group(&mut self, tag: &str, inner: impl FnOnce(&mut Xml)) {
        let before = self.written.len();
        self.indent();
        self.written.push_str(&format!("<{tag}>\n"));
        let begun = self.written.len();
        self.depth += 1;
        inner(self);
        self.depth -= 1;
        if self.written.len() == begun {
            self.written.truncate(before);
            return;
        }
        self.indent();
        let name = tag.split_ascii_whitespace().next().unwrap_or_default();
        self.written.push_str(&format!("</{name}>\n"));
    }

    fn indent(&mut self) {
        self.written.push_str(&"  ".repeat(self.depth));
    }
}
