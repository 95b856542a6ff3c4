//! A counter that many threads raise: each has a cell of its own, so that processors do not write to one cache line.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The number of cells. Threads beyond it share one.
const CELLS: usize = 16;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The cell of this thread.
    static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % CELLS;
}

/// A cell that has a cache line to itself.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell(AtomicU64);

/// A counter.
#[derive(Debug, Default)]
pub struct Striped([Cell; CELLS]);

impl Striped {
    /// Counts one.
    pub fn raise(&self) {
        self.0[OWN.with(|own| *own)]
            .0
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what all threads have counted.
    pub fn sum(&self) -> u64 {
        let cells = self.0.iter();
        cells.map(|cell| cell.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_count() {
        let counter = Striped::default();
        std::thread::scope(|scope| {
            for _ in 0..CELLS + 2 {
                scope.spawn(|| (0..100).for_each(|_| counter.raise()));
            }
        });
        assert_eq!(counter.sum(), 100 * (CELLS as u64 + 2));
    }
}
