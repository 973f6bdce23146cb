// SPDX-License-Identifier: PostgreSQL
//! The cold part of a header, written once by the segment's creator, with the regions of the file,
//! checked against its size.

use crate::clock::ClockKind;
use crate::error::Error;
use crate::layout::{self, header, text_at, u32_at, u64_at, Region};
use std::path::Path;

/// The part of the header that the creator of a segment wrote once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the file.
    pub size: u64,
    /// The source of its ticks.
    pub clock_kind: ClockKind,
    /// An instant in ticks ...
    pub clock_tick0: u64,
    /// ... and in nanoseconds of CLOCK_MONOTONIC.
    pub clock_ns0: u64,
    /// When it was created, nanoseconds since 1970.
    pub created_realtime_ns: u64,
    /// Inode of the writers' PID namespace; 0 if unknown.
    pub pid_namespace: u64,
    /// Number of slots, one per writer.
    pub slots: u32,
    /// Number of groups for retired slots.
    pub groups: u32,
    /// Maximum number of statistics in a book.
    pub stats_per_book: u32,
    /// ID of the boot during which it was created.
    pub boot_id: String,
    /// The measured program; for a server, its data directory.
    pub host: String,
    /// The creator and its version.
    pub producer: String,
    /// "PostgreSQL 15.20", or empty.
    pub server: String,
    /// PID of the postmaster; 0 if unknown.
    pub server_pid: u32,
    /// The server's port; 0 if unknown.
    pub server_port: u32,
    /// The folder of the server's socket, or empty.
    pub socket_dir: String,
    /// Whether all processes of the server write here, not only its sessions.
    pub all_processes: bool,
    /// Whether others may remove the file once the process `server_pid` has ended.
    pub transient: bool,
    /// When that process started, clock ticks since boot; 0 if unknown.
    pub process_started: u64,
}

/// The regions of the file, checked against its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regions {
    pub probes: Region,
    pub directory: Region,
    pub events: Region,
    pub merge_log: Region,
    pub journal: Region,
    pub entries: Region,
    pub books: Region,
    /// `None`: the segment keeps no statements.
    pub statements: Option<StatementRegions>,
    /// `None`: the segment keeps no relations.
    pub relations: Option<RelationRegions>,
    /// `None`: the segment keeps no plans.
    pub plans: Option<PlanRegions>,
    /// `None`: tracing is not available.
    pub traces: Option<Region>,
}

/// The regions of statements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatementRegions {
    pub sets: Region,
    pub table: Region,
    /// Counts that do not fit into the entries of the table.
    pub rests: Region,
    pub texts: Region,
    pub caches: Region,
}

/// The regions of plans.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanRegions {
    pub table: Region,
    /// A word for each entry; 1: the entry has memory.
    pub memory: Region,
}

/// The regions of relations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelationRegions {
    pub table: Region,
    pub local: Region,
}

/// The rests of a table's entries follow them, in the same order.
fn rests_of(table: Region) -> Option<Region> {
    let offset = table.offset + (table.end()? - table.offset).checked_next_multiple_of(4096)?;
    Some(Region { offset, count: table.count, stride: layout::rest::SIZE as u32 })
}

/// Read and check the cold part of a header, of a file of `length` bytes.
pub(crate) fn parse_header(
    path: &Path,
    head: &[u8],
    length: u64,
) -> Result<(Header, Regions), Error> {
    let path = path.to_path_buf();
    if !head.starts_with(layout::MAGIC) {
        return Err(Error::NotASegment { path });
    }
    if head.len() < 16 {
        return Err(Error::Truncated {
            path,
            expected: layout::header::SIZE as u64,
            found: length,
        });
    }
    match u32_at(head, header::BYTE_ORDER) {
        layout::BYTE_ORDER => {}
        order if order == layout::BYTE_ORDER.swap_bytes() => return Err(Error::ByteOrder { path }),
        order => {
            return Err(Error::Damaged {
                path,
                what: format!("its byte-order mark is {order:#010x}"),
            })
        }
    }
    let version = u32_at(head, header::VERSION);
    if version != layout::FORMAT_VERSION {
        return Err(Error::Version { path, found: version, known: layout::FORMAT_VERSION });
    }
    let size = u64_at(head, header::SEGMENT_SIZE);
    if head.len() < layout::header::SIZE || length < size {
        return Err(Error::Truncated {
            path,
            expected: size.max(layout::header::SIZE as u64),
            found: length,
        });
    }
    let damaged = |what: String| Error::Damaged { path: path.clone(), what };
    let number = |what: &str, at: usize, min: u32, max: u32| {
        let value = u32_at(head, at);
        if (min..=max).contains(&value) {
            Ok(value)
        } else {
            Err(damaged(format!("{what} is {value}, not between {min} and {max}")))
        }
    };
    number(
        "its header size",
        header::HEADER_SIZE,
        layout::header::SIZE as u32,
        layout::header::SIZE as u32,
    )?;
    number(
        "the number of histogram buckets",
        header::HIST_BUCKETS,
        layout::HIST_BUCKETS as u32,
        layout::HIST_BUCKETS as u32,
    )?;
    let slots = number("the number of slots", header::SLOTS, 1, 65_535)?;
    let groups = number("the number of groups", header::GROUPS, 1, 4_096)?;
    let stats_per_book =
        number("the number of statistics per session", header::STATS_PER_BOOK, 16, 4_096)?;
    let clock_kind = u32_at(head, header::CLOCK_KIND);
    let clock_kind = ClockKind::of_number(clock_kind)
        .ok_or_else(|| damaged(format!("its clock kind is {clock_kind}, not between 1 and 3")))?;
    let region = |what: &str, at: usize, count: (u32, u32), stride: usize| {
        let region = Region::at(head, at);
        let fits = region.end().is_some_and(|end| end <= size)
            && region.offset >= layout::header::SIZE as u64
            && region.offset.is_multiple_of(8)
            && (count.0..=count.1).contains(&region.count)
            && region.stride as usize >= stride
            && region.stride.is_multiple_of(8);
        if fits {
            Ok(region)
        } else {
            Err(damaged(format!(
                "the region of {what} ({} entries of {} bytes at offset {}) is invalid in a file of {size} bytes",
                region.count, region.stride, region.offset
            )))
        }
    };
    // Either all four regions exist and are consistent, or none exists.
    let statements = if u32_at(head, header::SETS + layout::region::COUNT) == 0 {
        None
    } else {
        let sets = region("statement sets", header::SETS, (1, 1 << 16), layout::set::SIZE)?;
        let entries = sets.count * layout::WAYS as u32;
        let table = layout::statement::SIZE;
        let table = region("statements", header::STATEMENTS, (entries, entries), table)?;
        let cache =
            layout::current::SIZE + layout::LOCAL_STATEMENTS * layout::local_statement::SIZE;
        Some(StatementRegions {
            sets,
            table,
            rests: rests_of(table)
                .filter(|rests| rests.end().is_some_and(|end| end <= size))
                .ok_or_else(|| {
                    damaged("statement entries extend beyond the end of the file".into())
                })?,
            texts: region("texts", header::TEXTS, (0, 1 << 24), layout::block::SIZE)?,
            caches: region("caches", header::CACHES, (slots, slots), cache)?,
        })
    };
    let relations = if u32_at(head, header::RELATIONS + layout::region::COUNT) == 0 {
        None
    } else {
        let local = layout::LOCAL_RELATIONS * layout::local_relation::SIZE;
        Some(RelationRegions {
            table: region("relations", header::RELATIONS, (1, 1 << 20), layout::relation::SIZE)?,
            local: region("local relations", header::LOCAL_RELATIONS, (slots, slots), local)?,
        })
    };
    let plans = match u32_at(head, header::PLANS + layout::region::COUNT) {
        0 => None,
        count => Some(PlanRegions {
            table: region("plans", header::PLANS, (1, 1 << 17), layout::plan::SIZE)?,
            memory: region("plan memory", header::PLAN_MEMORY, (count, count), 8)?,
        }),
    };
    let traces = match u32_at(head, header::TRACES + layout::region::COUNT) {
        0 => None,
        _ => {
            let size =
                layout::trace::SIZE + layout::TRACE_RECORDS as usize * layout::trace_record::SIZE;
            Some(region("traces", header::TRACES, (1, 64), size)?)
        }
    };
    let entries = (slots + groups, slots + groups);
    let book_size = layout::book_size(stats_per_book as usize);
    let regions = Regions {
        probes: region("probes", header::PROBES, (0, 4_096), layout::probe::SIZE)?,
        directory: region("names", header::DIRECTORY, (64, 65_536), layout::directory::SIZE)?,
        events: region("events", header::EVENTS, (16, 65_536), layout::event::SIZE)?,
        merge_log: region("merges", header::MERGE_LOG, (1, 1 << 20), 8)?,
        journal: region("journal", header::JOURNAL, (1, 1), layout::journal::SIZE)?,
        entries: region("slots", header::ENTRIES, entries, layout::entry::SIZE)?,
        books: region("books", header::BOOKS, entries, book_size)?,
        statements,
        relations,
        plans,
        traces,
    };
    Ok((
        Header {
            size,
            clock_kind,
            clock_tick0: u64_at(head, header::CLOCK_TICK0),
            clock_ns0: u64_at(head, header::CLOCK_NS0),
            created_realtime_ns: u64_at(head, header::CREATED_REALTIME_NS),
            pid_namespace: u64_at(head, header::PID_NAMESPACE),
            slots,
            groups,
            stats_per_book,
            boot_id: text_at(head, header::BOOT_ID, header::BOOT_ID_BYTES),
            host: text_at(head, header::HOST, header::HOST_BYTES),
            producer: text_at(head, header::PRODUCER, header::PRODUCER_BYTES),
            server: text_at(head, header::SERVER, header::SERVER_BYTES),
            server_pid: u32_at(head, header::SERVER_PID),
            server_port: u32_at(head, header::SERVER_PORT),
            socket_dir: text_at(head, header::SOCKET_DIR, header::SOCKET_DIR_BYTES),
            all_processes: u32_at(head, header::FLAGS) & layout::SEGMENT_SERVER != 0,
            transient: u32_at(head, header::FLAGS) & layout::SEGMENT_TRANSIENT != 0,
            process_started: u64_at(head, header::PROCESS_STARTED),
        },
        regions,
    ))
}
