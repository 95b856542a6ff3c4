//! The text of a PDF file: bytes in, words out, in the order in which the pages draw them.
//!
//! A page has glyphs at places and no words. A space is put where there is a gap between glyphs, and a word that was
//! divided at the end of a line is joined. The bytes may have been made to harm, see
//! [`picture`](super::picture): a process of its own reads them.

use hayro::hayro_interpret::font::Glyph;
use hayro::hayro_interpret::hayro_cmap::BfString;
use hayro::hayro_interpret::{
    BlendMode, ClipPath, Context, Device, GlyphDrawMode, Image, InterpreterCache,
    InterpreterSettings, Paint, PathDrawMode, SoftMask, interpret_page,
};
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use unicode_normalization::UnicodeNormalization;

/// The greatest distance of two glyphs of a word, sideways and up or down, in the height of the font.
const GAP: f64 = 0.2;
const RISE: f64 = 0.6;
/// The number of units of a glyph that are the height of the font.
const UNITS: f64 = 1000.0;
/// Limit of glyphs on a page. A page with more of them is a drawing rather than text; the others are left out.
const MOST_GLYPHS: u64 = 1_000_000;

/// The text of the pages, of at most so many bytes, as far as `goes_on` allows. It is asked before each page. None if
/// it is not a PDF file. May panic.
#[must_use]
pub fn pdf_text(bytes: Vec<u8>, longest: usize, goes_on: &dyn Fn() -> bool) -> Option<String> {
    let pdf = Pdf::new(bytes).ok()?;
    let cache = InterpreterCache::new();
    let mut lines = Lines {
        text: String::new(),
        end: None,
        glyphs: 0,
        longest,
    };
    for page in pdf.pages().iter() {
        if lines.text.len() >= longest || !goes_on() {
            break;
        }
        lines.begin_page();
        let area = Rect::new(-1e6, -1e6, 1e6, 1e6);
        let settings = InterpreterSettings::default();
        let mut context = Context::new(Affine::IDENTITY, area, &cache, pdf.xref(), settings);
        interpret_page(page, &mut context, &mut lines);
    }
    // Ligatures become letters.
    let mut text: String = lines.text.nfkc().collect();
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    Some(text)
}

/// The place of the last glyph, and its end.
#[derive(Clone, Copy, Debug)]
struct End {
    origin: Point,
    end: Point,
    /// The height of the font.
    height: f64,
}

/// The text that is drawn, as lines.
struct Lines {
    text: String,
    end: Option<End>,
    /// Of this page.
    glyphs: u64,
    longest: usize,
}

impl Lines {
    fn begin_page(&mut self) {
        self.end_line();
        self.end = None;
        self.glyphs = 0;
    }

    /// Begins a line; a word that a hyphen divides goes on.
    fn end_line(&mut self) {
        let text = self.text.trim_end_matches(' ');
        let word = text.strip_suffix(['-', '\u{ad}', '\u{2010}']);
        match word.filter(|word| word.ends_with(char::is_alphabetic)) {
            Some(word) => self.text.truncate(word.len()),
            None if self.text.is_empty() || self.text.ends_with('\n') => {}
            None => self.text.push('\n'),
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn add(&mut self, glyph: &Glyph<'_>, place: Affine) {
        self.glyphs += 1;
        if self.glyphs > MOST_GLYPHS || self.text.len() >= self.longest {
            return;
        }
        let origin = place * Point::ZERO;
        let along = place * Point::new(UNITS, 0.0) - origin;
        let height = (place * Point::new(0.0, UNITS) - origin).hypot();
        let advance = match glyph {
            Glyph::Outline(glyph) => glyph.advance_width().map(f64::from),
            Glyph::Type3(_) => None,
        };
        let end = origin + along * (advance.unwrap_or(UNITS / 2.0) / UNITS);
        self.part(origin, along, height);
        self.end = Some(End {
            origin,
            end,
            height,
        });
        match glyph.as_unicode() {
            Some(BfString::Char(sign)) => self.sign(sign),
            Some(BfString::String(signs)) => signs.chars().for_each(|sign| self.sign(sign)),
            None => self.space(),
        }
    }

    fn sign(&mut self, sign: char) {
        if sign.is_whitespace() || sign.is_control() {
            self.space();
        } else {
            self.text.push(sign);
        }
    }

    /// Puts what is between the last glyph and one at this place.
    fn part(&mut self, origin: Point, along: Vec2, height: f64) {
        let Some(last) = self.end else {
            return;
        };
        let length = along.hypot();
        let scale = height.max(last.height);
        if !(length.is_finite() && scale.is_finite() && length > 0.0 && scale > 0.0) {
            return self.space();
        }
        let forward = along / length;
        let moved = origin - last.end;
        let (right, up) = (moved.dot(forward), moved.cross(forward).abs());
        let is_back = (origin - last.origin).dot(forward) < -scale;
        if up > RISE * scale || is_back {
            self.end_line();
        } else if right > GAP * scale {
            self.space();
        }
    }
}

impl<'a> Device<'a> for Lines {
    fn set_soft_mask(&mut self, _: Option<SoftMask<'a>>) {}
    fn set_blend_mode(&mut self, _: BlendMode) {}
    fn draw_path(&mut self, _: &BezPath, _: Affine, _: &Paint<'a>, _: &PathDrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_glyph(
        &mut self,
        glyph: &Glyph<'a>,
        transform: Affine,
        glyph_transform: Affine,
        _: &Paint<'a>,
        _: &GlyphDrawMode,
    ) {
        self.add(glyph, transform * glyph_transform);
    }
    fn draw_image(&mut self, _: Image<'a, '_>, _: Affine) {}
    fn pop_clip_path(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest PDF file with one page for each text of operators.
    fn pdf(pages: &[&str]) -> Vec<u8> {
        let number = |page: usize| 4 + 2 * page;
        let kids: String = (0..pages.len())
            .map(|page| format!("{} 0 R ", number(page)))
            .collect();
        let mut text = format!(
            "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
             2 0 obj\n<</Type/Pages/Count {}/Kids[{kids}]>>\nendobj\n\
             3 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>\nendobj\n",
            pages.len()
        );
        for (page, operators) in pages.iter().enumerate() {
            let (number, content) = (number(page), number(page) + 1);
            text.push_str(&format!(
                "{number} 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]\
                 /Resources<</Font<</F 3 0 R>>>>/Contents {content} 0 R>>\nendobj\n\
                 {content} 0 obj\n<</Length {}>>\nstream\n{operators}\nendstream\nendobj\n",
                operators.len()
            ));
        }
        text.push_str("trailer\n<</Root 1 0 R>>\n%%EOF\n");
        text.into_bytes()
    }

    #[test]
    fn glyphs_become_words() {
        for (operators, expected) in [
            ("BT /F 12 Tf 50 700 Td (Rain fall) Tj ET", "Rain fall"),
            // A gap in place of a space, and a correction that is not one.
            (
                "BT /F 12 Tf 50 700 Td [(Rain) -400 (fa) 20 (ll)] TJ ET",
                "Rain fall",
            ),
            (
                "BT /F 12 Tf 50 700 Td (Rain) Tj 0 -14 Td (fall) Tj ET",
                "Rain\nfall",
            ),
            (
                "BT /F 12 Tf 50 700 Td (Rain-) Tj 0 -14 Td (fall) Tj ET",
                "Rainfall",
            ),
            ("BT /F 12 Tf 50 700 Td (2-) Tj 0 -14 Td (3) Tj ET", "2-\n3"),
            // Characters are found by the encoding of the font; what is invisible counts.
            ("BT /F 12 Tf 3 Tr 50 700 Td (Mar\\351) Tj ET", "Maré"),
            ("0 1 -1 0 300 300 cm BT /F 9 Tf (up) Tj ET", "up"),
            ("BT /F 0 Tf (flat) Tj ET", "f l a t"),
            ("1 0 0 rg 0 0 9 9 re f", ""),
        ] {
            let found = pdf_text(pdf(&[operators]), 1000, &|| true);
            assert_eq!(
                found.as_deref().map(str::trim),
                Some(expected),
                "{operators}"
            );
        }
    }

    #[test]
    fn the_text_is_bounded() {
        let page = "BT /F 12 Tf 50 700 Td (caf\\351) Tj ET";
        let three = pdf(&[page, page, page]);
        let found = |longest| pdf_text(three.clone(), longest, &|| true);
        assert_eq!(found(100).as_deref(), Some("café\ncafé\ncafé"));
        assert_eq!(found(8).as_deref(), Some("café\nca"));
        assert_eq!(found(4).as_deref(), Some("caf"));
        assert_eq!(pdf_text(three, 100, &|| false).as_deref(), Some(""));
        for bytes in [&b""[..], b"%PDF-1.4", &[0; 100]] {
            assert_eq!(pdf_text(bytes.to_vec(), 100, &|| true), None);
        }
    }
}
