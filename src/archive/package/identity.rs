//! The identity of a package, as an item keeps it that was made of one. No input or output.

/// The directory of an item that has what was beside the content of the package that it was made of.
pub(super) const KEPT: &str = "package";
/// The file there with the identity of the package.
pub(super) const RECORD: &str = "imported.txt";

/// The identity of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageIdentity {
    /// The digest of the list of its files with their digests; None if it has no files.
    pub digest: Option<String>,
    /// Its identifiers.
    pub identifiers: Vec<String>,
}

impl PackageIdentity {
    /// Reads a record.
    pub(super) fn parse(text: &str) -> PackageIdentity {
        let values = |name: &str| {
            let values = text.lines().filter_map(|line| line.split_once(' '));
            let values = values.filter(|(key, _)| *key == name);
            values
                .map(|(_, value)| value.to_owned())
                .collect::<Vec<_>>()
        };
        PackageIdentity {
            digest: values("sha256").pop(),
            identifiers: values("identifier"),
        }
    }

    /// The record.
    pub(super) fn text(&self) -> String {
        let digest = self
            .digest
            .iter()
            .map(|digest| format!("sha256 {digest}\n"));
        let identifiers = self.identifiers.iter();
        digest
            .chain(identifiers.map(|value| format!("identifier {value}\n")))
            .collect()
    }

    /// Whether both are of one package. Packages of one identifier may have other files by now; without one, the files
    /// decide.
    pub fn is_of(&self, other: &PackageIdentity) -> bool {
        let shares = self
            .identifiers
            .iter()
            .any(|value| other.identifiers.contains(value));
        let is_unnamed = self.identifiers.is_empty() || other.identifiers.is_empty();
        shares || is_unnamed && self.digest.is_some() && self.digest == other.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_apart() {
        let identity = |digest: &str, identifiers: &[&str]| PackageIdentity {
            digest: (!digest.is_empty()).then(|| digest.to_owned()),
            identifiers: identifiers.iter().map(|&value| value.to_owned()).collect(),
        };
        let one = identity("ab", &["x y", "z"]);
        assert_eq!(PackageIdentity::parse(&one.text()), one);
        for (other, is_one) in [
            (identity("ab", &["z"]), true),
            (identity("cd", &["z"]), true),
            (identity("ab", &[]), true),
            (identity("ab", &["other"]), false),
            (identity("cd", &[]), false),
            (identity("", &[]), false),
        ] {
            assert_eq!(one.is_of(&other), is_one, "{other:?}");
        }
        assert!(!identity("", &[]).is_of(&identity("", &[])));
    }
}
