// SPDX-License-Identifier: PostgreSQL
//! The kernel's counters of block devices, /proc/diskstats.

use serde::Serialize;

use crate::number::DeviceNumber;

macro_rules! disk_counters {
    ($($field:ident: $doc:literal;)*) => {
        /// Counters of one device since it was added. Times are in milliseconds, summed over all requests
        /// together. A request counts when it ends.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
        pub struct DiskCounters {
            /// The kernel's name of the device.
            pub name: String,
            /// The disk's sequence number, if the kernel has one: device numbers are reused.
            pub sequence: Option<u64>,
            $(#[doc = $doc] pub $field: u64,)*
            /// Discards, since Linux 4.18.
            pub discards: Option<Requests>,
            /// Flushes of the device's cache, since Linux 5.5; without bytes, and not for partitions.
            pub flushes: Option<Requests>,
        }

        impl DiskCounters {
            /// Builds the counters from the numbers of a line, in order.
            fn of_numbers(mut next: impl FnMut() -> Option<u64>) -> Option<DiskCounters> {
                Some(DiskCounters { $($field: next()?,)* ..DiskCounters::default() })
            }

            /// The increase of each counter.
            fn increase(&self, before: &DiskCounters) -> Option<DiskCounters> {
                let increase = DiskCounters::default();
                Some(DiskCounters { $($field: advance(before.$field, self.$field)?,)* ..increase })
            }
        }
    };
}

disk_counters! {
    reads: "Completed reads.";
    reads_merged: "Reads merged with others.";
    sectors_read: "Sectors of 512 bytes read.";
    read_ms: "Total time of reads.";
    writes: "Completed writes.";
    writes_merged: "Writes merged with others.";
    sectors_written: "Sectors of 512 bytes written.";
    write_ms: "Total time of writes.";
    in_flight: "Requests in progress.";
    busy_ms: "Time with any request in progress.";
    queue_ms: "Total time of all requests.";
}

/// Counters of one kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Completed requests.
    pub count: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Total time, ms.
    pub ms: u64,
}

impl DiskCounters {
    /// Parses one line into the device and its counters.
    pub(crate) fn parse(line: &str) -> Option<(DeviceNumber, DiskCounters)> {
        let mut words = line.split_ascii_whitespace();
        let major = words.next()?.parse().ok()?;
        let minor = words.next()?.parse().ok()?;
        let name = words.next()?.to_string();
        let mut numbers = words.map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let counters = DiskCounters::of_numbers(&mut next)?;
        let discards = match (next(), next(), next(), next()) {
            (Some(count), Some(_merged), Some(sectors), Some(ms)) => {
                Some(Requests { count, sectors, ms })
            }
            _ => None,
        };
        let flushes = next().zip(next()).map(|(count, ms)| Requests { count, sectors: 0, ms });
        let number = DeviceNumber { major, minor };
        Some((number, DiskCounters { name, discards, flushes, ..counters }))
    }

    /// The increase since an earlier reading; `None` if the counters have restarted. `in_flight` is from this
    /// reading.
    pub(crate) fn since(&self, before: &DiskCounters) -> Option<DiskCounters> {
        if self.sequence != before.sequence {
            return None;
        }
        let requests = |a: Option<Requests>, b: Option<Requests>| match (a, b) {
            (Some(a), Some(b)) => Some(Some(Requests {
                count: advance(a.count, b.count)?,
                sectors: advance(a.sectors, b.sectors)?,
                ms: advance(a.ms, b.ms)?,
            })),
            _ => Some(None),
        };
        // The number of requests in progress is not a counter.
        let before = DiskCounters { in_flight: 0, ..before.clone() };
        Some(DiskCounters {
            name: self.name.clone(),
            sequence: self.sequence,
            discards: requests(before.discards, self.discards)?,
            flushes: requests(before.flushes, self.flushes)?,
            ..self.increase(&before)?
        })
    }
}

/// The increase of a counter. Times wrap at 32 bits on every machine (after some weeks on a busy disk), other
/// counters if `long` has 32 bits. A decrease that would be a step of more than half of that range is not a wrap:
/// the counter restarted.
fn advance(before: u64, after: u64) -> Option<u64> {
    const RANGE: u64 = 1 << 32;
    match after.checked_sub(before) {
        Some(step) => Some(step),
        None if before < RANGE => Some(after + RANGE - before).filter(|&step| step < RANGE / 2),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured on Linux 6.18, 5.4 (no flushes) and 4.9 (neither).
    const NEW: &str = " 254       0 vda 1065052 35781 64015722 9619411 6188683 387180 225276600 1370364 60 664424 11237089 340141 16 91123024 118399 2718938 128915";
    const OLDER: &str = "   8       1 sda1 101 0 4856 45 2 0 2 1 0 60 46 7 0 8 9";
    const OLDEST: &str = " 104       0 cciss/c0d0 11 2 33 4 5 6 77 8 0 10 12";

    fn parse(line: &str) -> DiskCounters {
        DiskCounters::parse(line).expect("a line").1
    }

    #[test]
    fn lines_of_all_kernels_are_parsed() {
        let (number, new) = DiskCounters::parse(NEW).expect("a line");
        assert_eq!((number.to_string().as_str(), new.name.as_str()), ("254:0", "vda"));
        assert_eq!((new.reads, new.sectors_read, new.read_ms), (1065052, 64015722, 9619411));
        assert_eq!((new.writes, new.sectors_written, new.write_ms), (6188683, 225276600, 1370364));
        assert_eq!((new.in_flight, new.busy_ms, new.queue_ms), (60, 664424, 11237089));
        assert_eq!(new.discards, Some(Requests { count: 340141, sectors: 91123024, ms: 118399 }));
        assert_eq!(new.flushes, Some(Requests { count: 2718938, sectors: 0, ms: 128915 }));
        let older = parse(OLDER);
        assert_eq!(older.discards, Some(Requests { count: 7, sectors: 8, ms: 9 }));
        assert_eq!(older.flushes, None);
        let oldest = parse(OLDEST);
        assert_eq!(
            (oldest.name.as_str(), oldest.queue_ms, oldest.discards),
            ("cciss/c0d0", 12, None)
        );
        assert_eq!(DiskCounters::parse(""), None);
        assert_eq!(DiskCounters::parse("8 0 sda 1 2 three"), None);
    }

    #[test]
    fn times_wrap_and_counters_may_start_again() {
        let before = DiskCounters { read_ms: u32::MAX as u64 - 9, reads: 7, ..parse(OLDEST) };
        let after = DiskCounters { read_ms: 90, reads: 9, in_flight: 3, ..before.clone() };
        let step = after.since(&before).expect("a step");
        assert_eq!((step.read_ms, step.reads, step.in_flight), (100, 2, 3));
        // A device that is added again counts from zero.
        let again = DiskCounters { reads: 1, ..before.clone() };
        assert_eq!(again.since(&before), None);
        // 64-bit counters do not wrap.
        let large = DiskCounters { sectors_read: 1 << 40, ..before.clone() };
        assert_eq!(before.since(&large), None);
    }

    #[test]
    fn a_reused_number_is_another_device() {
        let before = DiskCounters { sequence: Some(9), ..parse(NEW) };
        let after = DiskCounters { sequence: Some(10), ..before.clone() };
        assert_eq!(after.since(&before), None);
        assert!(before.since(&before).is_some());
    }
}
