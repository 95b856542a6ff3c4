//! The promises of the fuzz targets, shown on the corpus that is kept of them: small inputs that reach
//! as much of the readers as hours of fuzzing have. `tests/fuzz/run` looks for new ones.

use std::path::Path;

#[path = "../fuzz/src/lib.rs"]
mod bodies;

/// The size that the corpus may take in the repository.
const MOST_BYTES: usize = 512 * 1024;

/// Says which input it was, should its body panic.
struct Replayed<'a>(&'a Path);

impl Drop for Replayed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input is {}", self.0.display());
        }
    }
}

#[test]
fn every_kept_input_keeps_every_promise() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let corpus = fuzz.join("corpus");
    // Without its words a target does not start.
    for of_targets in [&corpus, &fuzz.join("words")] {
        let mut names: Vec<String> = std::fs::read_dir(of_targets)
            .expect("a directory")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        assert_eq!(names, bodies::TARGETS.map(|(name, _)| name));
    }
    let mut bytes = 0;
    for (target, check) in bodies::TARGETS {
        let mut count = 0;
        for entry in std::fs::read_dir(corpus.join(target)).expect("a target's corpus") {
            let path = entry.expect("an entry").path();
            let input = std::fs::read(&path).expect("an input");
            let replayed = Replayed(&path);
            check(&input);
            drop(replayed);
            count += 1;
            bytes += input.len();
        }
        println!("{target}: {count} inputs");
        assert!(count > 0, "{target} has no corpus");
    }
    println!("{bytes} bytes");
    assert!(
        bytes < MOST_BYTES,
        "minimise it with 'tests/fuzz/run --merge'"
    );
}
