//! The look of pages: compared with pictures in `tests/looks`, at the width of a phone and of a desk, light and dark,
//! in both languages.
//!
//! `IBIFS_TEST_RECORD_LOOKS=1` records them again. They are a quarter as wide and high as the pages, and grey: small
//! differences of fonts and browsers do not matter, a block that has moved does.

use std::path::{Path, PathBuf};

use image::GrayImage;
use image::imageops::{FilterType, resize};

use super::served::{Fixture, Served};
use crate::support::TestEnv;

/// The factor by which the pictures are smaller.
const SCALE: u32 = 4;
/// The side of the blocks that are compared, in pixels of the pictures.
const BLOCK: u32 = 8;
/// The tolerated difference of the mean of a block, of 255, and of a hundred blocks the number that may differ more.
const TOLERATED: i64 = 8;
const TOLERATED_BLOCKS: usize = 3;

const ITEMS: &str = r##"
mint A rain > rain
cat > "A/$(< rain)/doc/README.md" << 'END'
# Rain
Monthly rainfall of five stations. See [the table](data.csv).

| Station | mm |
|---|---|
| Manaus | 210 |
END
printf 'a;b\n1;2\n' > "A/$(< rain)/doc/data.csv"
printf 'title: Rainfall of the Amazon\ncreator: Souza, Maria\ncreator: Banon, Gerald\ndate: 2009\ndescription: What five stations measured.\nsubject: rain\nrights: https://creativecommons.org/licenses/by/4.0/\n' > "A/$(< rain):"
mint A tides > tides; echo text > "A/$(< tides)/doc/tides.txt"
printf 'title: Rain and tides\ncreator: Lima, Ana\ndate: 2010\n' > "A/$(< tides):"
cat > fixed.py << 'END'
# A page whose identifiers and times are always the same, and whose addresses are those of the service.
import re, sys
def fixed(text):
    text = re.sub(r'\b20\d\d/\d\d\.\d\d[.\d]*', '2026/01.02.03.04.05', text)
    text = re.sub(r'\b20\d\d-\d\d-\d\d', '2026-01-02', text)
    text = re.sub(r'\b\d\d:\d\d(:\d\d)?', '03:04:05', text)
    return re.sub(r'\b[2-9A-Z]{8,}/[2-9A-Z]{6,}', '8JMKD3MGP8W/34PGRBS', text)
page = sys.stdin.read()
head, body = page.split('<body>', 1)
body = re.sub(r'>[^<]*<', lambda it: fixed(it.group()), body)
more = sys.argv[2] if len(sys.argv) > 2 else ''
print(head.replace('<head>', f'<head><base href="{sys.argv[1]}" />').replace('</head>', more + '</head>') + '<body>' + body)
END
"##;

fn small(path: &Path) -> GrayImage {
    let image = image::open(path).expect("a screenshot").to_luma8();
    let (width, height) = (image.width() / SCALE, image.height() / SCALE);
    resize(&image, width, height, FilterType::Triangle)
}

/// Returns how many of a hundred blocks differ.
fn difference(one: &GrayImage, other: &GrayImage) -> usize {
    if one.dimensions() != other.dimensions() {
        return 100;
    }
    let mean = |image: &GrayImage, x: u32, y: u32| {
        let pixels = (0..BLOCK * BLOCK).map(|at| (x + at % BLOCK, y + at / BLOCK));
        let pixels = pixels.filter(|(x, y)| *x < image.width() && *y < image.height());
        let values: Vec<i64> = pixels
            .map(|(x, y)| i64::from(image.get_pixel(x, y).0[0]))
            .collect();
        values.iter().sum::<i64>() / i64::try_from(values.len()).expect("some pixels")
    };
    let (mut blocks, mut different) = (0, 0);
    for y in (0..one.height()).step_by(BLOCK as usize) {
        for x in (0..one.width()).step_by(BLOCK as usize) {
            blocks += 1;
            let apart = mean(one, x, y).abs_diff(mean(other, x, y));
            different += usize::from(apart > TOLERATED.unsigned_abs());
        }
    }
    different * 100 / blocks
}

#[test]
fn pages_look_as_they_did() {
    let env = TestEnv::new().with_a();
    env.sh(ITEMS);
    let served = Served::start(&env, "A.store");
    let fixture = Fixture::new(env, served, "");
    let looks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/looks");
    let is_recording = std::env::var_os("IBIFS_TEST_RECORD_LOOKS").is_some();
    let shot = |path: &str, language: &str, width: u32, scheme: &str, more: &str| -> PathBuf {
        let dark = match scheme {
            "dark" => "--blink-settings=preferredColorScheme=0",
            _ => "--blink-settings=preferredColorScheme=1",
        };
        fixture.sh(&format!(
            r#"
            for try in $(seq 50); do
                code=$(curl -sS -o body -w '%{{http_code}}' -H 'Accept: text/html' -H 'Accept-Language: {language}' "$U{path}")
                test $code = 503 || break; sleep .2
            done
            test $code = 200
            python3 fixed.py "$U/" '{more}' < body > page.html; rm -f shot.png
            timeout 60 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
                --user-data-dir="$PWD/profile" --virtual-time-budget=3000 --force-device-scale-factor=1 \
                --window-size={width},1200 {dark} --screenshot="$PWD/shot.png" "file://$PWD/page.html" 2> complaints
            test -s shot.png || {{ cat complaints; exit 1; }}
            "#
        ));
        fixture.env.root().join("shot.png")
    };
    let pages = [
        ("item", "/$(< rain)?page"),
        ("files", "/$(< rain)?ibiurl.verblist=GetFileList"),
        ("search", "/search?q=rain"),
    ];
    let mut strays = Vec::new();
    for (name, path) in pages {
        for language in ["en", "pt"] {
            for width in [390, 1280] {
                for scheme in ["light", "dark"] {
                    let file = looks.join(format!("{name}-{language}-{width}-{scheme}.png"));
                    let seen = small(&shot(path, language, width, scheme, ""));
                    if is_recording {
                        std::fs::create_dir_all(&looks).expect("a directory");
                        seen.save(&file).expect("recorded");
                        continue;
                    }
                    let known = image::open(&file).expect("a recorded picture").to_luma8();
                    let found = difference(&known, &seen);
                    if found > TOLERATED_BLOCKS {
                        strays.push(format!("{}: {found} % differ", file.display()));
                    }
                }
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
    // A change of the layout is found.
    if !is_recording {
        let worse =
            "<style>dl { display: block !important; } h2 { margin: 4rem 0 !important; }</style>";
        let seen = small(&shot(pages[0].1, "en", 1280, "light", worse));
        let known = image::open(looks.join("item-en-1280-light.png")).expect("recorded");
        let found = difference(&known.to_luma8(), &seen);
        assert!(found > 2 * TOLERATED_BLOCKS, "only {found} % differ");
    }
}
