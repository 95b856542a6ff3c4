//! The digests that packages have, and the comparison of files with them.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use blake2::Blake2b;
use blake2::digest::consts::{U20, U32, U48, U64};
use rustix::io::Errno;
use sha2::digest::DynDigest;

use super::files::{is_missing, open_file, read_through};
use super::{PackageError, Problem};
use crate::archive::tree::Action;
use crate::formats::hex::Hex;

/// A digest algorithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Algorithm {
    /// Its name in OCFL, and in lower case and without `-` in the names of a bag's manifests.
    pub(super) name: &'static str,
    /// The hexadecimal digits of its digests.
    pub(super) digits: usize,
    hasher: fn() -> Box<dyn DynDigest>,
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        self.name == other.name
    }
}

fn of<D: DynDigest + Default + 'static>() -> Box<dyn DynDigest> {
    Box::new(D::default())
}

/// Those of BagIt and OCFL, and of the extension 0009 of OCFL.
const ALGORITHMS: [Algorithm; 11] = [
    Algorithm {
        name: "sha512",
        digits: 128,
        hasher: of::<sha2::Sha512>,
    },
    Algorithm {
        name: "sha256",
        digits: 64,
        hasher: of::<sha2::Sha256>,
    },
    Algorithm {
        name: "sha1",
        digits: 40,
        hasher: of::<sha1::Sha1>,
    },
    Algorithm {
        name: "md5",
        digits: 32,
        hasher: of::<md5::Md5>,
    },
    Algorithm {
        name: "sha224",
        digits: 56,
        hasher: of::<sha2::Sha224>,
    },
    Algorithm {
        name: "sha384",
        digits: 96,
        hasher: of::<sha2::Sha384>,
    },
    Algorithm {
        name: "sha512/256",
        digits: 64,
        hasher: of::<sha2::Sha512_256>,
    },
    Algorithm {
        name: "blake2b-160",
        digits: 40,
        hasher: of::<Blake2b<U20>>,
    },
    Algorithm {
        name: "blake2b-256",
        digits: 64,
        hasher: of::<Blake2b<U32>>,
    },
    Algorithm {
        name: "blake2b-384",
        digits: 96,
        hasher: of::<Blake2b<U48>>,
    },
    Algorithm {
        name: "blake2b-512",
        digits: 128,
        hasher: of::<Blake2b<U64>>,
    },
];

impl Algorithm {
    /// The algorithm with this name.
    pub(super) fn named(name: &str) -> Option<&'static Algorithm> {
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
    }

    /// The algorithm that is in the name of a bag's manifest.
    pub(super) fn of_manifest(name: &str) -> Option<&'static Algorithm> {
        let plain = |name: &str| name.to_ascii_lowercase().replace('-', "");
        ALGORITHMS
            .iter()
            .find(|algorithm| plain(algorithm.name) == plain(name))
    }

    /// The digest of bytes, in hexadecimal digits.
    pub(super) fn digest(&self, bytes: &[u8]) -> String {
        let mut hasher = (self.hasher)();
        hasher.update(bytes);
        Hex(&hasher.finalize()).to_string()
    }
}

/// The path of a file's content, and its digests.
#[derive(Clone, Debug, Default)]
pub(super) struct PackagedFile {
    pub(super) path: Vec<u8>,
    /// In hexadecimal digits.
    pub(super) digests: Vec<(&'static Algorithm, String)>,
}

/// The files of a package, by the paths that its description uses.
pub(super) type Contents = BTreeMap<Vec<u8>, PackagedFile>;

/// Compares a file with all its digests. Returns the first one that differs.
pub(super) fn differing(
    root: &OwnedFd,
    content: &PackagedFile,
    count: &mut dyn FnMut(u64),
) -> Result<Option<usize>, PackageError> {
    let mut file = open_file(root, &content.path).map_err(|errno| match errno {
        errno if is_missing(errno) => PackageError::file(&content.path, Problem::Missing),
        Errno::LOOP | Errno::INVAL | Errno::XDEV => {
            PackageError::file(&content.path, Problem::NotRegular)
        }
        errno => PackageError::io(Action::Open, &content.path)(errno),
    })?;
    count(0);
    let hashers = content
        .digests
        .iter()
        .map(|(algorithm, _)| (algorithm.hasher)());
    let mut hashers: Vec<Box<dyn DynDigest>> = hashers.collect();
    read_through(&mut file, &content.path, |bytes| {
        for hasher in &mut hashers {
            hasher.update(bytes);
        }
        count(bytes.len() as u64);
        Ok(())
    })?;
    let found = hashers
        .into_iter()
        .map(|hasher| Hex(&hasher.finalize()).to_string());
    let mut compared = found.zip(&content.digests);
    Ok(compared.position(|(found, (_, digest))| !digest.eq_ignore_ascii_case(&found)))
}
