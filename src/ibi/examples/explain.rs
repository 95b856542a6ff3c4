//! Explains identifiers: `cargo run -p ibi --example explain -- 8JMKD3MGP8W/34PGRBS`.

use std::process::ExitCode;

use ibi::Ibi;

fn main() -> ExitCode {
    let mut outcome = ExitCode::SUCCESS;
    for text in std::env::args().skip(1) {
        match Ibi::parse(&text) {
            Ok(ibi) => {
                let about = ibi.explain();
                let minted_by = about.host.or(about.address).unwrap_or_default();
                println!(
                    "{}: a {} minted by {minted_by} on {}",
                    about.canonical, about.form, about.date
                );
            }
            Err(error) => {
                eprintln!("explain: {error}");
                outcome = ExitCode::FAILURE;
            }
        }
    }
    outcome
}
