// SPDX-License-Identifier: PostgreSQL
//! The few words of a book that move with every command, and the level, for those who look
//! or switch hundreds of times a second.
//!
//! Each word is read by itself, and each is written whole by its one writer, so none tears;
//! two of them may be of two instants.

use crate::error::Error;
use crate::layout::{self, book, entry, header, i32_at, text_at, u32_at, u64_at};
use crate::level::Level;
use crate::segment::Segment;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

/// A slot in use, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Its number.
    pub slot: u32,
    /// How often it has been claimed.
    pub generation: u32,
    /// The process.
    pub pid: i32,
    /// What kind of process, "client backend" for one.
    pub kind: String,
}

/// What a book says of its writer's doings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// Changes made to the book, twice counted. Stands still while the level is off.
    pub seq: u64,
    /// Calls through the probe in question.
    pub calls: u64,
}

impl Segment {
    /// The slots in use whose identity is not being changed right now.
    pub fn claims(&self) -> Result<Vec<Claim>, Error> {
        let region = self.regions.entries;
        let (mut one, mut again) = ([0u8; entry::SIZE], [0u8; 4]);
        let mut claims = Vec::new();
        for slot in 0..self.header().slots {
            let at = region.entry(slot);
            self.read(at, &mut again)?;
            if u32_at(&again, 0) != layout::state::LIVE {
                continue;
            }
            self.read(at, &mut one)?;
            self.read(at + entry::IDENTITY_SEQ as u64, &mut again)?;
            let seq = u32_at(&one, entry::IDENTITY_SEQ);
            let changing = seq % 2 == 1 || seq != u32_at(&again, 0);
            if changing || u32_at(&one, entry::STATE) != layout::state::LIVE {
                continue;
            }
            claims.push(Claim {
                slot,
                generation: u32_at(&one, entry::GENERATION),
                pid: i32_at(&one, entry::PID),
                kind: text_at(&one, entry::KIND, 64),
            });
        }
        Ok(claims)
    }

    /// The pulse of a slot, `probe` being the place in the table of probes.
    pub fn pulse(&self, slot: u32, probe: u32) -> Result<Pulse, Error> {
        let mut bytes = [0u8; book::CALLS + 8 * layout::CALLS];
        if slot < self.regions.books.count {
            self.read(self.regions.books.entry(slot), &mut bytes)?;
        }
        let calls = book::CALLS + 8 * (probe as usize).min(layout::CALLS - 1);
        Ok(Pulse { seq: u64_at(&bytes, book::SEQ), calls: u64_at(&bytes, calls) })
    }

    /// A switch for the level of this very file, even if another takes its place meanwhile.
    ///
    /// Needs the right to write the file, so the server's user or root.
    pub fn level_switch(&self) -> Result<LevelSwitch, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(
                (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32
            )
            .open(self.path())
            .map_err(|e| crate::segment::open_error(self.path(), "change its level", e))?;
        let switch = LevelSwitch { file, path: self.path().to_path_buf() };
        // The checks of a reader, on the very file that will be written.
        Segment::from_file(switch.file.try_clone().map_err(|e| switch.io(e))?, self.path())?;
        Ok(switch)
    }
}

/// The level of one segment, held open for writing.
#[derive(Debug)]
pub struct LevelSwitch {
    file: File,
    path: PathBuf,
}

impl LevelSwitch {
    /// Only the byte of the level is written, so that a reset made in the same instant,
    /// which counts in the other three, is not undone.
    const OFFSET: u64 =
        header::LEVEL_WORD as u64 + if cfg!(target_endian = "little") { 0 } else { 3 };

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.clone(), wish: "change its level", source }
    }

    /// The level in force.
    pub fn get(&self) -> Result<Level, Error> {
        let mut byte = [0u8; 1];
        self.file.read_exact_at(&mut byte, Self::OFFSET).map_err(|e| self.io(e))?;
        Ok(Level::of_word(u32::from(byte[0])))
    }

    /// Set it, for all writers at once; they act on it at their next probe.
    pub fn set(&self, level: Level) -> Result<(), Error> {
        self.file.write_all_at(&[level.number()], Self::OFFSET).map_err(|e| self.io(e))
    }
}
