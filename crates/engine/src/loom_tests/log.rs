//! Readers of a log see whole records, in order, across chunks.

use super::{Log, Reserve};
use loom::thread;
use std::sync::Arc;

#[test]
fn a_reader_sees_whole_records() {
    loom::model(|| {
        let log = Arc::new(Log::new(Reserve::new(1)));
        let written = Arc::clone(&log);
        let writer = thread::spawn(move || {
            for number in 1..=3 {
                // SAFETY: this thread alone appends. Two such records fill a chunk.
                unsafe { written.append([number, 10 * number]) };
            }
        });
        let read = |log: &Log| {
            let mut seen = Vec::new();
            log.each(|words| {
                while let Some(number) = words.next() {
                    seen.push((number, words.next()));
                }
            });
            seen
        };
        for (at, &(number, rest)) in (1..).zip(&read(&log)) {
            assert_eq!((number, rest), (at, Some(10 * at)));
        }
        writer.join().expect("the writer ends");
        assert_eq!(read(&log), [(1, Some(10)), (2, Some(20)), (3, Some(30))]);
    });
}
