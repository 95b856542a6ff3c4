//! Licences, by the identifiers of SPDX, by their URLs and by the names that people write.
//!
//! The crate `spdx` knows identifiers and expressions of them, and neither URLs nor "CC BY 4.0", which is what records
//! have. Those of Creative Commons are taken apart by their rules; the others are a table.

/// A licence that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct License {
    /// Its identifier in the list of SPDX. None of one that is not in the list, as most ports of Creative Commons.
    pub spdx: Option<String>,
    /// Its URL.
    pub url: String,
}

/// The URL of the list of SPDX.
pub const SPDX: &str = "https://spdx.org/licenses/";

impl License {
    /// The licence that a text names or links. None if the text is not plainly one of a licence.
    #[must_use]
    pub fn read(text: &str) -> Option<License> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        let Some(url) = without_scheme(text) else {
            return creative_commons_name(text).or_else(|| named(text));
        };
        if let Some(path) = url.strip_prefix("creativecommons.org/") {
            return creative_commons_url(path);
        }
        if let Some(id) = url.strip_prefix("spdx.org/licenses/") {
            return creative_commons_name(id).or_else(|| named(id));
        }
        let is_its = |known: &&Known| known.urls.iter().any(|its| bare(its) == url);
        KNOWN.iter().find(is_its).map(Known::license)
    }
}

/// A URL as it is compared: without scheme, `www.`, and what servers add at the end. None of another text.
fn without_scheme(text: &str) -> Option<String> {
    let url = text.strip_prefix("https://");
    url.or_else(|| text.strip_prefix("http://")).map(bare)
}

fn bare(url: &str) -> String {
    let url = url.to_ascii_lowercase();
    let url = url.strip_prefix("www.").unwrap_or(&url);
    let url = url.trim_end_matches('/');
    let end = [".html", ".json", ".txt", ".php"];
    let cut = end.iter().find_map(|end| url.strip_suffix(end));
    cut.unwrap_or(url).to_owned()
}

/// The longest text that can be a licence, in bytes.
const LONGEST: usize = 200;

/// The words of a text in lower case.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|sign: char| !sign.is_alphanumeric() && !".+".contains(sign));
    let words = words.map(|word| word.trim_matches('.').to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

const VERSIONS: [&str; 5] = ["1.0", "2.0", "2.5", "3.0", "4.0"];
/// Ports that are in the list of SPDX: terms, version, port.
const PORTS: &[(&str, &str, &str)] = &[
    ("by", "2.5", "au"),
    ("by", "3.0", "at"),
    ("by", "3.0", "au"),
    ("by", "3.0", "de"),
    ("by", "3.0", "igo"),
    ("by", "3.0", "nl"),
    ("by", "3.0", "us"),
    ("by-nc", "3.0", "de"),
    ("by-nc-nd", "3.0", "de"),
    ("by-nc-nd", "3.0", "igo"),
    ("by-nc-sa", "2.0", "de"),
    ("by-nc-sa", "2.0", "uk"),
    ("by-nc-sa", "3.0", "de"),
    ("by-nc-sa", "3.0", "igo"),
    ("by-nd", "3.0", "de"),
    ("by-sa", "2.0", "uk"),
    ("by-sa", "2.1", "jp"),
    ("by-sa", "3.0", "at"),
    ("by-sa", "3.0", "de"),
    ("by-sa", "3.0", "igo"),
];
const TERMS: [&str; 6] = ["by", "by-nc", "by-nc-nd", "by-nc-sa", "by-nd", "by-sa"];

/// A licence of Creative Commons from its terms, its version and its port.
fn creative_commons(terms: &str, version: &str, port: Option<&str>) -> Option<License> {
    // The licences of version 1.0 had the terms in another order.
    let terms = match terms {
        "by-nd-nc" => "by-nc-nd",
        terms => terms,
    };
    let is_version = VERSIONS.contains(&version) || PORTS.iter().any(|it| it.1 == version);
    if !TERMS.contains(&terms) || !is_version {
        return None;
    }
    let port = port.filter(|port| {
        let is_word = port.bytes().all(|byte| byte.is_ascii_lowercase());
        (2..=8).contains(&port.len()) && is_word
    });
    let is_listed = port.is_none_or(|port| PORTS.contains(&(terms, version, port)));
    let of_port = port.map_or(String::new(), |port| format!("-{port}"));
    let spdx = format!("CC-{terms}-{version}{of_port}").to_uppercase();
    let in_url = match (terms, version) {
        ("by-nc-nd", "1.0") => "by-nd-nc",
        (terms, _) => terms,
    };
    let path = port.map_or(String::new(), |port| format!("{port}/"));
    Some(License {
        spdx: is_listed.then_some(spdx),
        url: format!("https://creativecommons.org/licenses/{in_url}/{version}/{path}"),
    })
}

/// `licenses/by/4.0/deed.pt`, `publicdomain/zero/1.0`.
fn creative_commons_url(path: &str) -> Option<License> {
    let mut parts = path.split('/');
    match (parts.next()?, parts.next()?, parts.next()?) {
        ("licenses", terms, version) => {
            let is_page = |part: &&str| part.starts_with("deed") || part.starts_with("legalcode");
            let port = parts.next().filter(|part| !is_page(part));
            creative_commons(terms, version, port)
        }
        ("publicdomain", "zero", "1.0") => named("CC0-1.0"),
        ("publicdomain", "mark", "1.0") => Some(License {
            spdx: None,
            url: "https://creativecommons.org/publicdomain/mark/1.0/".to_owned(),
        }),
        _ => None,
    }
}

/// `CC BY-NC 4.0`, `CC-BY-3.0-DE`, `Creative Commons Attribution-ShareAlike 4.0 International License`.
fn creative_commons_name(text: &str) -> Option<License> {
    let words = words(text);
    let mut rest = words.iter().map(String::as_str).peekable();
    rest.next_if_eq(&"the");
    match (rest.next()?, rest.peek()) {
        ("cc", _) => {}
        ("creative", Some(&"commons")) => drop(rest.next()),
        _ => return None,
    }
    let (mut terms, mut version, mut port) = (Vec::new(), None, None);
    let mut before = "";
    for word in rest {
        match word {
            "by" | "attribution" | "atribuição" | "atribuicao" => terms.push("by"),
            "nc" | "noncommercial" | "nãocomercial" => terms.push("nc"),
            "comercial" | "commercial" if ["non", "não", "nao"].contains(&before) => {
                terms.push("nc");
            }
            "sa" | "sharealike" | "compartilhaigual" => terms.push("sa"),
            "nd" | "noderivatives" | "noderivs" | "semderivações" => terms.push("nd"),
            "alike" if before == "share" => terms.push("sa"),
            "derivatives" | "derivs" if before == "no" => terms.push("nd"),
            "igual" if before == "compartilha" => terms.push("sa"),
            "derivações" if before == "sem" => terms.push("nd"),
            "non" | "não" | "nao" | "share" | "no" | "compartilha" | "sem" | "license"
            | "licence" | "international" | "internacional" | "unported" | "generic" | "public"
            | "v" | "licença" => {}
            number if version.is_none() && number.contains('.') => {
                version = Some(number.trim_start_matches('v'));
            }
            word if version.is_some() && port.is_none() && (2..=3).contains(&word.len()) => {
                port = Some(word);
            }
            _ => return None,
        }
        before = word;
    }
    creative_commons(&terms.join("-"), version?, port)
}

/// A licence with the texts by which it is known.
struct Known {
    spdx: &'static str,
    /// URLs without their scheme; the first one is its own.
    urls: &'static [&'static str],
    /// Names in lower case, with their words separated by single spaces.
    names: &'static [&'static str],
}

impl Known {
    fn license(&self) -> License {
        let url = self.urls.first().unwrap_or(&"");
        License {
            spdx: Some(self.spdx.to_owned()),
            url: format!("https://{url}"),
        }
    }
}

/// A licence of the table, by its identifier or by a name.
fn named(text: &str) -> Option<License> {
    let mut words = words(text);
    words.retain(|word| !matches!(&**word, "the" | "license" | "licence" | "version" | "v"));
    let name = words.join(" ");
    let is_it = |known: &&Known| {
        known.spdx.eq_ignore_ascii_case(text.trim()) || known.names.contains(&&*name)
    };
    KNOWN.iter().find(is_it).map(Known::license)
}

macro_rules! known {
    ($($spdx:literal [$($url:literal)*] [$($name:literal)*])*) => {
        &[$(Known { spdx: $spdx, urls: &[$($url),*], names: &[$($name),*] }),*]
    };
}

#[rustfmt::skip]
const KNOWN: &[Known] = known! {
    "CC0-1.0" ["creativecommons.org/publicdomain/zero/1.0/"] ["cc0" "cc0 1.0" "cc 0" "cc zero" "cc0 1.0 universal" "creative commons zero" "creative commons zero 1.0 universal"]
    "MIT" ["opensource.org/license/mit" "opensource.org/licenses/mit" "opensource.org/licenses/mit-license.php"] ["mit" "expat"]
    "Apache-2.0" ["www.apache.org/licenses/LICENSE-2.0" "opensource.org/licenses/apache-2.0" "opensource.org/license/apache-2-0"] ["apache 2.0" "apache 2" "apache software 2.0" "apache2"]
    "BSD-2-Clause" ["opensource.org/licenses/bsd-2-clause" "opensource.org/license/bsd-2-clause"] ["bsd 2 clause" "simplified bsd"]
    "BSD-3-Clause" ["opensource.org/licenses/bsd-3-clause" "opensource.org/license/bsd-3-clause"] ["bsd 3 clause" "new bsd" "modified bsd"]
    "ISC" ["opensource.org/licenses/isc" "opensource.org/license/isc-license-txt"] ["isc"]
    "MPL-2.0" ["www.mozilla.org/MPL/2.0/" "opensource.org/licenses/mpl-2.0"] ["mpl 2.0" "mozilla public 2.0"]
    "GPL-2.0-only" ["www.gnu.org/licenses/old-licenses/gpl-2.0.html" "opensource.org/licenses/gpl-2.0"] ["gpl 2.0" "gpl 2" "gplv2" "gnu gpl v2" "gnu general public 2"]
    "GPL-2.0-or-later" ["www.gnu.org/licenses/old-licenses/gpl-2.0.html"] ["gpl 2.0+" "gplv2+"]
    "GPL-3.0-only" ["www.gnu.org/licenses/gpl-3.0.html" "gnu.org/licenses/gpl" "opensource.org/licenses/gpl-3.0"] ["gpl 3.0" "gpl 3" "gplv3" "gnu gplv3" "gnu gpl 3" "gnu general public 3" "gnu general public 3.0"]
    "GPL-3.0-or-later" ["www.gnu.org/licenses/gpl-3.0.html"] ["gpl 3.0+" "gplv3+"]
    "LGPL-2.1-only" ["www.gnu.org/licenses/old-licenses/lgpl-2.1.html" "opensource.org/licenses/lgpl-2.1"] ["lgpl 2.1" "lgplv2.1" "gnu lesser general public 2.1"]
    "LGPL-2.1-or-later" ["www.gnu.org/licenses/old-licenses/lgpl-2.1.html"] ["lgpl 2.1+"]
    "LGPL-3.0-only" ["www.gnu.org/licenses/lgpl-3.0.html" "opensource.org/licenses/lgpl-3.0"] ["lgpl 3.0" "lgpl 3" "lgplv3" "gnu lesser general public 3" "gnu lesser general public 3.0"]
    "LGPL-3.0-or-later" ["www.gnu.org/licenses/lgpl-3.0.html"] ["lgpl 3.0+" "lgplv3+"]
    "AGPL-3.0-only" ["www.gnu.org/licenses/agpl-3.0.html" "opensource.org/licenses/agpl-3.0"] ["agpl 3.0" "agpl 3" "agplv3" "gnu affero general public 3" "gnu affero general public 3.0"]
    "AGPL-3.0-or-later" ["www.gnu.org/licenses/agpl-3.0.html"] ["agpl 3.0+" "agplv3+"]
    "EUPL-1.2" ["eupl.eu/1.2/en" "joinup.ec.europa.eu/collection/eupl/eupl-text-eupl-12" "opensource.org/licenses/eupl-1.2"] ["eupl 1.2" "european union public 1.2"]
    "EUPL-1.1" ["joinup.ec.europa.eu/software/page/eupl/licence-eupl" "opensource.org/licenses/eupl-1.1"] ["eupl 1.1" "european union public 1.1"]
    "CECILL-2.1" ["cecill.info/licences/licence_cecill_v2.1-en"] ["cecill 2.1"]
    "EPL-2.0" ["www.eclipse.org/legal/epl-2.0" "opensource.org/licenses/epl-2.0"] ["epl 2.0" "eclipse public 2.0"]
    "Artistic-2.0" ["opensource.org/licenses/artistic-2.0" "opensource.org/license/artistic-2-0"] ["artistic 2.0"]
    "Zlib" ["opensource.org/licenses/zlib" "opensource.org/license/zlib"] ["zlib"]
    "Unlicense" ["unlicense.org"] ["unlicense"]
    "ODbL-1.0" ["opendatacommons.org/licenses/odbl/1-0" "opendatacommons.org/licenses/odbl/1.0" "opendatacommons.org/licenses/odbl"] ["odbl" "odbl 1.0" "open database" "open data commons open database" "open data commons open database 1.0"]
    "ODC-By-1.0" ["opendatacommons.org/licenses/by/1-0" "opendatacommons.org/licenses/by/1.0" "opendatacommons.org/licenses/by"] ["odc by" "odc by 1.0" "open data commons attribution" "open data commons attribution 1.0"]
    "PDDL-1.0" ["opendatacommons.org/licenses/pddl/1-0" "opendatacommons.org/licenses/pddl/1.0" "opendatacommons.org/licenses/pddl"] ["pddl" "pddl 1.0" "open data commons public domain dedication and" "open data commons public domain dedication and 1.0"]
    "OGL-UK-3.0" ["www.nationalarchives.gov.uk/doc/open-government-licence/version/3"] ["ogl 3.0" "open government 3.0"]
    "etalab-2.0" ["www.etalab.gouv.fr/licence-ouverte-open-licence"] ["etalab 2.0"]
    "GFDL-1.3-only" ["www.gnu.org/licenses/fdl-1.3.html"] ["gfdl 1.3" "gnu free documentation 1.3"]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licenses_are_known_by_all_their_names() {
        let cases: &[(&str, &str, &str)] = &[
            (
                "CC BY 4.0",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "CC-BY-4.0",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "cc-by 4.0",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "https://creativecommons.org/licenses/by/4.0/",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "http://creativecommons.org/licenses/by/4.0/deed.pt_BR",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "https://creativecommons.org/licenses/by/4.0/legalcode",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "https://spdx.org/licenses/CC-BY-4.0.html",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "Creative Commons Attribution 4.0 International",
                "CC-BY-4.0",
                "creativecommons.org/licenses/by/4.0/",
            ),
            (
                "Creative Commons Attribution-NonCommercial-ShareAlike 3.0 Unported License",
                "CC-BY-NC-SA-3.0",
                "creativecommons.org/licenses/by-nc-sa/3.0/",
            ),
            (
                "CC BY-NC-ND 4.0",
                "CC-BY-NC-ND-4.0",
                "creativecommons.org/licenses/by-nc-nd/4.0/",
            ),
            (
                "CC-BY-3.0-DE",
                "CC-BY-3.0-DE",
                "creativecommons.org/licenses/by/3.0/de/",
            ),
            (
                "https://creativecommons.org/licenses/by/3.0/br/",
                "",
                "creativecommons.org/licenses/by/3.0/br/",
            ),
            (
                "https://creativecommons.org/licenses/by-nd-nc/1.0/",
                "CC-BY-NC-ND-1.0",
                "creativecommons.org/licenses/by-nd-nc/1.0/",
            ),
            (
                "CC0",
                "CC0-1.0",
                "creativecommons.org/publicdomain/zero/1.0/",
            ),
            (
                "cc0-1.0",
                "CC0-1.0",
                "creativecommons.org/publicdomain/zero/1.0/",
            ),
            (
                "https://creativecommons.org/publicdomain/zero/1.0/",
                "CC0-1.0",
                "creativecommons.org/publicdomain/zero/1.0/",
            ),
            ("MIT License", "MIT", "opensource.org/license/mit"),
            (
                "https://opensource.org/licenses/MIT",
                "MIT",
                "opensource.org/license/mit",
            ),
            (
                "Apache License, Version 2.0",
                "Apache-2.0",
                "www.apache.org/licenses/LICENSE-2.0",
            ),
            ("GPL-3.0-or-later", "GPL-3.0-or-later", ""),
            (
                "https://www.gnu.org/licenses/gpl-3.0.html",
                "GPL-3.0-only",
                "www.gnu.org/licenses/gpl-3.0.html",
            ),
            ("GPLv3", "GPL-3.0-only", "www.gnu.org/licenses/gpl-3.0.html"),
            ("ODbL", "ODbL-1.0", "opendatacommons.org/licenses/odbl/1-0"),
        ];
        for (text, spdx, url) in cases {
            let license = License::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(license.spdx.as_deref().unwrap_or_default(), *spdx, "{text}");
            let found = license.url.to_ascii_lowercase();
            assert!(
                url.is_empty() || found == format!("https://{}", url.to_ascii_lowercase()),
                "{text}: {found}"
            );
        }
        for text in [
            "",
            "CC BY",
            "CC",
            "© 2010 INPE",
            "CC BY 9.0",
            "all rights reserved",
            "https://example.org/mit",
            "by nc",
        ] {
            assert_eq!(License::read(text), None, "{text}");
        }
    }
}
