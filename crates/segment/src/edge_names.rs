// SPDX-License-Identifier: PostgreSQL
//! Names of calls between methods of a Java client. Two method names do not fit into one directory entry, so each is
//! stored as `#` and the hash of the name of its inclusive time, by which that name is found (FORMAT.md, section 4).

use crate::error::Error;
use crate::functions::{CallFigure, Name};
use crate::layout::{directory, name_state, text_at, u32_at, u64_at};
use crate::segment::Segment;

/// Maximum number of entries to read to find a name: searches are long in a directory that is nearly full, and longer
/// in a hostile one.
const MOST_STEPS: u32 = 256;

impl Segment {
    /// Converts `edge::#<hash>::#<hash>` to `edge::<package>::<method>::<package>::<method>`. Other names, and names
    /// whose methods are not found, are returned as they are.
    pub(crate) fn spelled(&self, name: String) -> Result<String, Error> {
        let Some([caller, callee]) = hashes(&name) else {
            return Ok(name);
        };
        Ok(match (self.method(caller)?, self.method(callee)?) {
            (Some(caller), Some(callee)) => format!("edge::{caller}::{callee}"),
            _ => name,
        })
    }

    /// The method whose inclusive time has a name with this hash.
    fn method(&self, hash: u64) -> Result<Option<String>, Error> {
        let region = self.regions.directory;
        let first = hash.checked_rem(u64::from(region.count)).unwrap_or(0) as u32;
        for step in 0..region.count.min(MOST_STEPS) {
            let index = (u64::from(first) + u64::from(step)) % u64::from(region.count);
            let mut bytes = [0u8; directory::SIZE];
            self.read(region.entry(index as u32), &mut bytes)?;
            match u32_at(&bytes, directory::STATE) {
                name_state::FREE => return Ok(None),
                name_state::PUBLISHED if u64_at(&bytes, directory::HASH) == hash => {
                    let name = text_at(&bytes, directory::NAME, directory::NAME_BYTES);
                    if let Some(Name::Function {
                        key: [method, package],
                        figure: CallFigure::Inclusive,
                    }) = crate::functions::parts(&name)
                    {
                        return Ok(Some(format!("{package}::{method}")));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

fn hashes(name: &str) -> Option<[u64; 2]> {
    let (caller, callee) = name.strip_prefix("edge::#")?.split_once("::#")?;
    let number = |hash: &str| u64::from_str_radix(hash, 16).ok();
    Some([number(caller)?, number(callee)?])
}
