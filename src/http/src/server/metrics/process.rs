//! The resources that this process uses, with the names that clients of Prometheus give to them. From files of `/proc`
//! that a process which has given up root may read.

use super::text::{MetricKind, MetricsText};
use ibifs_os::system_files;

/// The clock of `/proc`, in ticks per second: USER_HZ, which is 100 on all platforms of Linux.
const TICKS: f64 = 100.0;

/// Adds processor time and memory.
pub fn measure(text: &mut MetricsText) {
    let read = |name: &str| system_files::read_text(format!("/proc/self/{name}")).ok();
    if let Some(seconds) = read("stat").and_then(|stat| processor_seconds(&stat)) {
        text.single(
            "process_cpu_seconds_total",
            MetricKind::Counter,
            "Processor time of the process, in user and system mode, in seconds.",
            seconds,
        );
    }
    if let Some(bytes) = read("status").and_then(|status| resident_bytes(&status)) {
        text.single(
            "process_resident_memory_bytes",
            MetricKind::Gauge,
            "Memory of the process that is resident, in bytes.",
            bytes,
        );
    }
}

fn processor_seconds(stat: &str) -> Option<f64> {
    // The name of the program, in parentheses, may have any characters.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_proc() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 300 4096 12 184";
        let seconds = processor_seconds(stat).expect("parsed");
        assert!((seconds - 2.0).abs() < 1e-9);
        let status = "Name:\tibifs\nVmHWM:\t  9 kB\nVmRSS:\t    12 kB\n";
        assert_eq!(resident_bytes(status), Some(12_288));
    }
}
