//! Small pictures of images and of the first pages of PDF files: bytes in, a JPEG out.
//!
//! The author of the bytes may have made them to harm: decoders may need any amount of memory and time, or end the
//! process. `web` draws in a process of its own for that reason.

use std::io::Cursor;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{RenderCache, RenderSettings, render};
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageReader, Limits, RgbImage};

/// The longest side of a picture, in pixels.
pub const LONGEST_SIDE: u16 = 640;
/// The longest picture, in bytes.
pub const LONGEST: usize = 256 * 1024;
/// The memory that the pixels of an image may need, in bytes: some 60 million pixels of three colours.
const MOST_MEMORY: u64 = 192 * 1024 * 1024;
/// The sides of an image, in pixels.
const MOST_PIXELS_ASIDE: u32 = 30_000;
/// The qualities in which a picture is written until it is short enough, of 100.
const QUALITIES: [u8; 3] = [82, 60, 30];
/// The beginning and the end of every JPEG.
const JPEG: (&[u8], &[u8]) = (&[0xff, 0xd8, 0xff], &[0xff, 0xd9]);

/// The source of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// An image in a format with pixels.
    Image,
    /// The first page of a PDF file.
    Pdf,
}

impl Drawn {
    /// Returns what is drawn of a file of this media type.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Drawn> {
        match media_type {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "image/tiff" => {
                Some(Drawn::Image)
            }
            "application/pdf" => Some(Drawn::Pdf),
            _ => None,
        }
    }
}

/// A small picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Its sides, in pixels.
    pub width: u16,
    /// See `width`.
    pub height: u16,
    /// It itself.
    pub jpeg: Vec<u8>,
}

impl Picture {
    /// The sides as two numbers of two bytes, and the JPEG.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let sides = [self.width.to_be_bytes(), self.height.to_be_bytes()].concat();
        [sides, self.jpeg.clone()].concat()
    }

    /// A picture that another process has drawn. None if it is not one, or larger than it may be.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Picture> {
        let (sides, jpeg) = bytes.split_at_checked(4)?;
        let side = |at: usize| {
            let side = u16::from_be_bytes([*sides.get(at)?, *sides.get(at + 1)?]);
            (1..=LONGEST_SIDE).contains(&side).then_some(side)
        };
        let is_jpeg = jpeg.starts_with(JPEG.0) && jpeg.ends_with(JPEG.1) && jpeg.len() <= LONGEST;
        Some(Picture {
            width: side(0)?,
            height: side(2)?,
            jpeg: is_jpeg.then(|| jpeg.to_vec())?,
        })
    }
}

/// Draws what the bytes of a file show. None if that cannot be done within the limits. May panic.
#[must_use]
pub fn draw(drawn: Drawn, bytes: Vec<u8>) -> Option<Picture> {
    let pixels = match drawn {
        Drawn::Image => image(&bytes)?,
        Drawn::Pdf => page(bytes)?,
    };
    let (width, height) = pixels.dimensions();
    let jpeg = QUALITIES.into_iter().find_map(|quality| {
        let mut jpeg = Vec::new();
        let encoder = &mut JpegEncoder::new_with_quality(&mut jpeg, quality);
        encoder
            .encode(pixels.as_raw(), width, height, ExtendedColorType::Rgb8)
            .ok()?;
        (jpeg.len() <= LONGEST).then_some(jpeg)
    })?;
    Some(Picture {
        width: u16::try_from(width).ok()?,
        height: u16::try_from(height).ok()?,
        jpeg,
    })
}

/// An image of any size, as the camera was held.
fn image(bytes: &[u8]) -> Option<RgbImage> {
    let reader = ImageReader::new(Cursor::new(bytes));
    let mut reader = reader.with_guessed_format().ok()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    limits.max_image_width = Some(MOST_PIXELS_ASIDE);
    limits.max_image_height = Some(MOST_PIXELS_ASIDE);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    if decoder.total_bytes() > MOST_MEMORY {
        return None;
    }
    let orientation = decoder.orientation().ok();
    let image = DynamicImage::from_decoder(decoder).ok()?;
    let side = u32::from(LONGEST_SIDE);
    let mut image = if image.width().max(image.height()) > side {
        image.thumbnail(side, side)
    } else {
        image
    };
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    Some(on_white(&image))
}

/// An image without transparent places, which a JPEG cannot have.
fn on_white(image: &DynamicImage) -> RgbImage {
    let pixels = image.to_rgba8();
    let mut opaque = RgbImage::new(pixels.width(), pixels.height());
    for (to, from) in opaque.pixels_mut().zip(pixels.pixels()) {
        let [red, green, blue, alpha] = from.0.map(u16::from);
        let mixed = |colour: u16| {
            let sum = colour * alpha + 255 * (255 - alpha);
            u8::try_from(sum / 255).unwrap_or(u8::MAX)
        };
        to.0 = [mixed(red), mixed(green), mixed(blue)];
    }
    opaque
}

/// The first page of a PDF file.
fn page(bytes: Vec<u8>) -> Option<RgbImage> {
    let pdf = Pdf::new(bytes).ok()?;
    let page = pdf.pages().first()?;
    let (width, height) = page.render_dimensions();
    let longest = width.max(height);
    if !longest.is_finite() || width.min(height) < 1.0 {
        return None;
    }
    let scale = f32::from(LONGEST_SIDE) / longest;
    let side = |length: f32| ((length * scale).round() as u16).clamp(1, LONGEST_SIDE);
    let settings = RenderSettings {
        x_scale: scale,
        y_scale: scale,
        width: Some(side(width)),
        height: Some(side(height)),
        bg_color: WHITE,
    };
    let (cache, interpreter) = (RenderCache::new(), InterpreterSettings::default());
    let pixels = render(page, &cache, &interpreter, &settings);
    let (width, height) = (u32::from(pixels.width()), u32::from(pixels.height()));
    // On white nothing is transparent.
    let colours = pixels
        .data()
        .iter()
        .flat_map(|pixel| [pixel.r, pixel.g, pixel.b]);
    RgbImage::from_raw(width, height, colours.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::ImageFormat;

    fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).expect("encoded");
        bytes.into_inner()
    }

    fn sides(drawn: Drawn, bytes: Vec<u8>) -> Option<(u16, u16)> {
        draw(drawn, bytes).map(|picture| {
            let again = Picture::from_bytes(&picture.to_bytes());
            assert_eq!(again.as_ref(), Some(&picture));
            (picture.width, picture.height)
        })
    }

    /// The smallest PDF file with one page of this size that holds these operators.
    fn pdf(width: u32, height: u32, operators: &str) -> Vec<u8> {
        format!(
            "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
             2 0 obj\n<</Type/Pages/Count 1/Kids[3 0 R]>>\nendobj\n\
             3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 {width} {height}]/Contents 4 0 R>>\nendobj\n\
             4 0 obj\n<</Length {}>>\nstream\n{operators}\nendstream\nendobj\n\
             trailer\n<</Root 1 0 R>>\n%%EOF\n",
            operators.len()
        )
        .into_bytes()
    }

    #[test]
    fn images_become_small() {
        for (width, height, expected) in [
            (1, 1, (1, 1)),
            (640, 10, (640, 10)),
            (1280, 640, (640, 320)),
            (2000, 1, (640, 1)),
        ] {
            let image = DynamicImage::new_rgba16(width, height);
            for format in [ImageFormat::Png, ImageFormat::Tiff] {
                assert_eq!(sides(Drawn::Image, encoded(&image, format)), Some(expected));
            }
            let image = DynamicImage::new_rgb8(width, height);
            for format in [ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
                assert_eq!(sides(Drawn::Image, encoded(&image, format)), Some(expected));
            }
        }
        // A transparent picture becomes white.
        let clear = on_white(&DynamicImage::new_rgba8(1, 1));
        assert_eq!(clear.as_raw(), &[255, 255, 255]);
    }

    #[test]
    fn a_page_of_a_pdf_is_drawn() {
        let red = pdf(200, 100, "1 0 0 rg 0 0 100 100 re f");
        let pixels = page(red.clone()).expect("a page");
        assert_eq!(pixels.get_pixel(10, 10).0, [255, 0, 0]);
        assert_eq!(pixels.get_pixel(600, 10).0, [255, 255, 255]);
        assert_eq!(sides(Drawn::Pdf, red), Some((640, 320)));
    }

    #[test]
    fn what_is_no_picture_is_not_drawn() {
        let image = encoded(&DynamicImage::new_rgb8(900, 900), ImageFormat::Jpeg);
        let bomb = {
            // The length of the sides in the head of the file.
            let mut bomb = encoded(&DynamicImage::new_rgb8(9, 9), ImageFormat::Png);
            bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
            bomb
        };
        for bytes in [Vec::new(), vec![0; 1000], b"\xff\xd8\xff".to_vec(), bomb] {
            assert_eq!(sides(Drawn::Image, bytes), None);
        }
        for bytes in [Vec::new(), b"%PDF-1.4".to_vec(), image] {
            assert_eq!(sides(Drawn::Pdf, bytes), None);
        }
        for bytes in [&[0, 1, 0, 1, 1, 2][..], &[0, 0, 0, 1], &[]] {
            assert_eq!(Picture::from_bytes(bytes), None);
        }
    }
}
