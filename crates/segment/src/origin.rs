// SPDX-License-Identifier: PostgreSQL
//! A segment on another machine, or one that this user may not open: an origin supplies its bytes, and everything else
//! reads them like those of a file.
//!
//! The image is a file in memory, as sparse as the segment. It already belongs to one instant, so all reading protocols
//! find it unchanged. Only "now" differs: the image has the instant at which each slot was copied, and no clock of this
//! machine is used.

use std::fmt::Debug;
use std::fs::File;

use rustix::fs::MemfdFlags;

use crate::error::Error;
use crate::header::Header;
use crate::moment::Moment;

/// The parts to read in addition to sessions, groups, names and events; a sum of these numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts(pub u8);

impl Parts {
    /// Statements, and the statement of each session.
    pub const STATEMENTS: Parts = Parts(1);
    /// Plans of statements.
    pub const PLANS: Parts = Parts(2);
    /// I/O on relations.
    pub const RELATIONS: Parts = Parts(4);

    /// Both sets of parts.
    pub fn and(self, other: Parts) -> Parts {
        Parts(self.0 | other.0)
    }

    /// These parts if `wanted`, otherwise none.
    pub fn when(self, wanted: bool) -> Parts {
        if wanted {
            self
        } else {
            Parts::default()
        }
    }
}

/// Supplies the bytes of a segment.
pub trait Origin: Debug + Send + Sync {
    /// Write the changes of these parts since the last call into the image; at the first call, everything.
    ///
    /// # Errors
    ///
    /// If it fails, the image must no longer be read.
    fn bring(&mut self, image: &File, parts: Parts) -> Result<Moment, Error>;
    /// The server, for messages.
    fn server(&self) -> &str;
    /// A connection string with which other code can also connect to the server.
    fn conninfo(&self) -> &str;
}

/// A segment's origin, and the instant of its image.
#[derive(Debug)]
pub(crate) struct Remote {
    pub origin: Box<dyn Origin>,
    pub moment: Moment,
    /// The parts requested.
    pub parts: Parts,
}

impl Remote {
    /// Complete the header: name the server if the role may not see its data directory, and say if the image is
    /// incomplete.
    pub fn describe(&self, header: &mut Header) {
        if header.host.is_empty() {
            header.host = self.origin.server().into();
        }
        if !self.moment.complete {
            header.host.push_str(", only sessions and statements of your own roles");
        }
    }
}

/// A first image, and its origin.
pub(crate) fn first_image(mut origin: Box<dyn Origin>) -> Result<(File, Remote), Error> {
    let failed = |source: std::io::Error| Error::Io {
        path: "memory".into(),
        wish: "keep an image of the segment",
        source,
    };
    let image = rustix::fs::memfd_create("tally", MemfdFlags::CLOEXEC);
    let image = File::from(image.map_err(|error| failed(error.into()))?);
    let parts = Parts::default();
    let moment = origin.bring(&image, parts)?;
    Ok((image, Remote { origin, moment, parts }))
}
