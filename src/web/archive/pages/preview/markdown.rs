//! Markdown (CommonMark with tables) as a part of a page. Elements of HTML in it are left out, links lead to pages of
//! the web or to files of the item, and pictures are links: nothing is loaded from elsewhere.

use std::mem::take;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::super::view::file_url;
use crate::formats::item::Names;
use crate::formats::query::percent_decoded_bytes;
use crate::http::server::page::html::escaped;

/// The longest result that is shown, in bytes: a short text can make a table with many empty cells.
const LONGEST: usize = 1024 * 1024;

/// A text that lies in an item at a path, as markup.
pub(crate) fn formatted(text: &str, names: &Names, path: &[u8]) -> Markup {
    let directory = path
        .rsplitn(2, |byte| *byte == b'/')
        .nth(1)
        .unwrap_or_default();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writer = Writer {
        names,
        directory,
        code: false,
        links: Vec::new(),
    };
    let events = Parser::new_ext(text, options).flat_map(|event| writer.events(event));
    let mut markup = String::new();
    html::push_html(&mut markup, events);
    // Pages show a line feed by its number.
    let markup = markup.replace('\n', "");
    if markup.len() > LONGEST {
        return super::lines(text).0;
    }
    PreEscaped(format!("<div class=\"text\">{markup}</div>"))
}

/// The page that is made of the events of the parser.
struct Writer<'a> {
    names: &'a Names,
    /// The directory of the text in the item.
    directory: &'a [u8],
    /// Whether the text is a block of code, in which lines end where they do.
    code: bool,
    /// For each link that has begun: whether it is written.
    links: Vec<bool>,
}

impl Writer<'_> {
    fn events<'e>(&mut self, event: Event<'e>) -> Vec<Event<'e>> {
        match event {
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Start(Tag::HtmlBlock)
            | Event::End(TagEnd::HtmlBlock) => Vec::new(),
            Event::Text(text) if self.code => code_lines(&text),
            Event::Text(text) => vec![markup(escaped(&text))],
            Event::Code(text) => vec![markup(format!("<code>{}</code>", escaped(&text)))],
            Event::SoftBreak => vec![markup(" ".to_owned())],
            Event::Start(Tag::CodeBlock(_)) => {
                self.code = true;
                vec![markup("<pre><code>".to_owned())]
            }
            Event::End(TagEnd::CodeBlock) => {
                self.code = false;
                vec![markup("</code></pre>".to_owned())]
            }
            // The title of the page and of the section are above those of the text.
            Event::Start(Tag::Heading { level, .. }) => vec![markup(format!("<{}>", below(level)))],
            Event::End(TagEnd::Heading(level)) => vec![markup(format!("</{}>", below(level)))],
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.link(&dest_url)
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let is_written = self.links.pop().unwrap_or_default();
                let end = is_written.then(|| markup("</a>".to_owned()));
                end.into_iter().collect()
            }
            event => vec![event],
        }
    }

    /// The begin of a link. A link in a link, as of a picture, is its text alone.
    fn link<'e>(&mut self, to: &str) -> Vec<Event<'e>> {
        let href = if self.links.contains(&true) {
            None
        } else {
            self.target(to)
        };
        self.links.push(href.is_some());
        let begin = href.map(|href| markup(format!("<a href=\"{}\">", escaped(&href))));
        begin.into_iter().collect()
    }

    /// Returns where a link leads: to the web, or to a file of the item. None for other schemes, for places in the
    /// text itself, and for what is outside of the item.
    fn target(&self, to: &str) -> Option<String> {
        let has_scheme = |scheme: &&str| {
            let begin = to.get(..scheme.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        if ["https://", "http://", "mailto:"].iter().any(has_scheme) {
            return Some(to.to_owned());
        }
        let path = to.split(['#', '?']).next().unwrap_or_default();
        let begins_with_scheme = path.split('/').next().unwrap_or_default().contains(':');
        if path.is_empty() || path.starts_with('/') || begins_with_scheme {
            return None;
        }
        let path = percent_decoded_bytes(path)?;
        let mut parts: Vec<&[u8]> = self.directory.split(|byte| *byte == b'/').collect();
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        parts.retain(|part| !part.is_empty());
        (!parts.is_empty()).then(|| file_url(self.names, &parts.join(&b'/')))
    }
}

fn below(level: HeadingLevel) -> &'static str {
    match level {
        HeadingLevel::H1 => "h3",
        HeadingLevel::H2 => "h4",
        HeadingLevel::H3 => "h5",
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h6",
    }
}

/// Lines of code. The last may go on in the next event.
fn code_lines<'e>(text: &str) -> Vec<Event<'e>> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for character in text.chars() {
        match character {
            '\n' => {
                lines.push(markup(escaped(&take(&mut line))));
                lines.push(markup("<br />".to_owned()));
            }
            character => line.push(character),
        }
    }
    lines.push(markup(escaped(&line)));
    lines
}

fn markup<'e>(text: String) -> Event<'e> {
    Event::InlineHtml(CowStr::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let rep = ibi::Rep::parse("example.org/a/2020/01.01.00.00").expect("a rep");
        let names = Names::new(Some(rep), None).expect("a name");
        let markup = formatted(text, &names, b"doc/README.md").into_string();
        let inner = markup
            .strip_prefix("<div class=\"text\">")
            .expect("the frame");
        inner.strip_suffix("</div>").expect("its end").to_owned()
    }

    #[test]
    fn a_text_is_formatted() {
        for (text, expected) in [
            ("# A *b*\nc\n", "<h3>A <em>b</em></h3><p>c</p>"),
            ("a\nb", "<p>a b</p>"),
            (
                "```\nx <y>\n\nz\n```\n",
                "<pre><code>x &lt;y&gt;<br /><br />z<br /></code></pre>",
            ),
            ("`a\"<`", "<p><code>a&quot;&lt;</code></p>"),
            ("* a\n* b", "<ul><li>a</li><li>b</li></ul>"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        for (text, expected) in [
            ("<script>x</script>\n", ""),
            ("a <b onclick=x>b</b>", "<p>a b</p>"),
            ("[a](javascript:x)", "<p>a</p>"),
            ("[a](JavaScript&#58;x)", "<p>a</p>"),
            ("[a](data:text/html,x)", "<p>a</p>"),
            ("[a](/etc)", "<p>a</p>"),
            ("[a](../../x)", "<p>a</p>"),
            ("[a](#x)", "<p>a</p>"),
            (
                "[a](https://a.example/\"'>)",
                "<p><a href=\"https://a.example/&quot;&#39;&gt;\">a</a></p>",
            ),
            (
                "![a](https://a.example/x.png)",
                "<p><a href=\"https://a.example/x.png\">a</a></p>",
            ),
            (
                "[![a](x.png)](y)",
                "<p><a href=\"/col/example.org/a/2020/01.01.00.00/doc/y\">a</a></p>",
            ),
            (
                "[a](sub/x%20y.txt)",
                "<p><a href=\"/col/example.org/a/2020/01.01.00.00/doc/sub/x%20y.txt\">a</a></p>",
            ),
            ("x href=\"/y\"", "<p>x href=&quot;/y&quot;</p>"),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_short_text_does_not_make_a_long_page() {
        let columns = 5000;
        let text = format!(
            "{}\n{}\n{}",
            "a|".repeat(columns),
            "-|".repeat(columns),
            "b\n".repeat(20_000)
        );
        assert!(of_length(&text) < 2 * LONGEST);
        assert!(of_length(&"> ".repeat(30_000)) < 2 * LONGEST);
        assert!(of_length(&"[".repeat(60_000)) < 2 * LONGEST);
    }

    fn of_length(text: &str) -> usize {
        let rep = ibi::Rep::parse("example.org/a/2020/01.01.00.00").expect("a rep");
        formatted(text, &Names::new(Some(rep), None).expect("a name"), b"a.md")
            .into_string()
            .len()
    }
}
