// SPDX-License-Identifier: PostgreSQL
//! Reads the directory: statistics by the index in a head, and the names of tranches.

use crate::directory::{Directory, Stat, StatId, StatKind};
use crate::error::Error;
use crate::layout::{directory, name_state, stat_kind, text_at, u32_at};
use crate::segment::Segment;
use crate::wait_class::WaitClass;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Segment {
    /// Passes each complete name of a kind to `see`.
    pub(crate) fn each_name(&self, kind: u32, mut see: impl FnMut(&str)) -> Result<(), Error> {
        self.each_entry(self.regions.directory, directory::SIZE, |_, bytes| {
            if u32_at(bytes, directory::STATE) == name_state::PUBLISHED
                && u32_at(bytes, directory::KIND) == kind
            {
                see(&text_at(bytes, directory::NAME, directory::NAME_BYTES));
            }
        })
    }

    /// The activities of all processes so far: "cpu", "IO:WalSync", ...
    pub fn activities(&self) -> Result<BTreeSet<String>, Error> {
        let mut found = BTreeSet::new();
        self.each_name(stat_kind::ACCOUNT, |name| {
            let stat = Stat::new(name.to_string(), StatKind::Account, String::new());
            found.insert(stat.activity().to_string());
        })?;
        Ok(found)
    }

    /// Our number for the statistic of a head, if it is already known.
    pub(crate) fn known_stat(&self, stat: u32) -> Option<StatId> {
        self.ids.get(stat.checked_sub(1)? as usize).copied().flatten()
    }

    /// Our number for the statistic of a head (1 + its index in the directory); `None` if the directory
    /// has no such entry.
    pub(crate) fn stat(&mut self, stat: u32) -> Result<Option<StatId>, Error> {
        let Some(index) = stat.checked_sub(1) else {
            return Ok(None);
        };
        if let Some(&Some(id)) = self.ids.get(index as usize) {
            return Ok(Some(id));
        }
        let region = self.regions.directory;
        if index >= region.count {
            return Ok(None);
        }
        let mut bytes = [0u8; directory::SIZE];
        self.read(region.entry(index), &mut bytes)?;
        if u32_at(&bytes, directory::STATE) != name_state::PUBLISHED {
            return Ok(None);
        }
        let kind = match u32_at(&bytes, directory::KIND) {
            stat_kind::ACCOUNT => StatKind::Account,
            stat_kind::TIMER => StatKind::Timer,
            stat_kind::VALUE => StatKind::Value,
            _ => return Ok(None),
        };
        let name = self.spelled(text_at(&bytes, directory::NAME, directory::NAME_BYTES))?;
        let id = Directory::intern(
            &mut self.directory,
            Stat::new(name, kind, text_at(&bytes, directory::UNIT, directory::UNIT_BYTES))
                .with_class(WaitClass::of_entry(bytes[directory::ACCOUNT_CLASS])),
        );
        if self.ids.len() <= index as usize {
            self.ids.resize(index as usize + 1, None);
        }
        self.ids[index as usize] = Some(id);
        Ok(Some(id))
    }

    /// Read the names of these tranches.
    pub(crate) fn name_tranches(
        &mut self,
        mut tranches: impl Iterator<Item = u32>,
    ) -> Result<(), Error> {
        if tranches.all(|tranche| self.tranches.knows(tranche)) {
            return Ok(());
        }
        // Read the whole directory, because entries are placed by the hash of the whole name. This is rare.
        let mut known = Arc::clone(&self.tranches);
        let names = Arc::make_mut(&mut known);
        self.each_entry(self.regions.directory, directory::SIZE, |_, entry| {
            let kind = u32_at(entry, directory::KIND);
            if u32_at(entry, directory::STATE) == name_state::PUBLISHED && kind == stat_kind::NAME {
                names.learn(&text_at(entry, directory::NAME, directory::NAME_BYTES));
            }
        })?;
        self.tranches = known;
        Ok(())
    }
}
