// SPDX-License-Identifier: PostgreSQL
//! A segment on another machine, or one that this user may not open: somebody brings its bytes, and everything else
//! reads them as those of a file.
//!
//! The image is a file in memory, as sparse as the segment. What is brought is of one instant already, so all
//! protocols of reading find it at rest. Only "now" differs: the image has the instant at which each slot was
//! copied, and no clock of this machine is asked.

use std::fmt::Debug;
use std::fs::File;

use rustix::fs::MemfdFlags;

use crate::error::Error;
use crate::header::Header;
use crate::moment::Moment;

/// What is wanted besides sessions, groups, names and events: sums of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts(pub u8);

impl Parts {
    /// Statements, and what sessions execute.
    pub const STATEMENTS: Parts = Parts(1);
    /// Plans of statements.
    pub const PLANS: Parts = Parts(2);
    /// I/O on relations.
    pub const RELATIONS: Parts = Parts(4);

    /// These and those.
    pub fn and(self, other: Parts) -> Parts {
        Parts(self.0 | other.0)
    }

    /// These if that holds.
    pub fn when(self, wanted: bool) -> Parts {
        if wanted {
            self
        } else {
            Parts::default()
        }
    }
}

/// Brings the bytes of a segment.
pub trait Origin: Debug + Send + Sync {
    /// Write into the image what has changed since the last call, of these parts; at the first call everything.
    ///
    /// # Errors
    ///
    /// Why it cannot; the image must not be read any more.
    fn bring(&mut self, image: &File, parts: Parts) -> Result<Moment, Error>;
    /// The server, for messages.
    fn server(&self) -> &str;
    /// A connection string, with which others can connect to it too.
    fn conninfo(&self) -> &str;
}

/// A segment's origin, and the instant of its image.
#[derive(Debug)]
pub(crate) struct Remote {
    pub origin: Box<dyn Origin>,
    pub moment: Moment,
    /// What has been asked for.
    pub parts: Parts,
}

impl Remote {
    /// Say in the header what it is, where a role may not see that, and if it is not all.
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
