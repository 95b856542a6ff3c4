//! Mints three identifiers in both forms, as an Archive at archive.example.org would:
//! `cargo run -p ibi --example mint`.
//!
//! A real Archive keeps the last date on disk before it shows the identifier, and waits for
//! `reservation.wait`.

use std::error::Error;
use std::time::{Duration, SystemTime};

use ibi::distributor::{Granularity, TemporalDistributor};
use ibi::{Ibip, IbipPrefix, Rep, RepPrefix, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let host = RepPrefix::from_host("archive.example.org", 80)?;
    let address = IbipPrefix::from_address("192.0.2.7".parse()?, 800);
    let mut distributor = TemporalDistributor::new(Granularity::default(), None);
    let limit = Duration::from_secs(10);
    for _ in 0..3 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let now = Timestamp::from_unix(now.as_secs().try_into()?, now.subsec_nanos());
        let reservation = distributor.reserve(&now, limit)?;
        std::thread::sleep(reservation.wait);
        let date = &reservation.date;
        println!(
            "{}  {}",
            Rep::mint(&host, date),
            Ibip::mint(&address, date)?
        );
    }
    Ok(())
}
