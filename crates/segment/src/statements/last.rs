// SPDX-License-Identifier: PostgreSQL
//! The statement that a session executes or has executed last, and its message while the statement is not known.

use super::key::{FileKey, StatementKey};
use super::seqlock::Tries;
use super::texts::shown;
use crate::error::Error;
use crate::header::StatementRegions;
use crate::layout::{self, book, current, entry, head, i32_at, key, message_text, u32_at, u64_at};
use crate::segment::Segment;
use crate::statement_text::Text;
use std::sync::atomic::{fence, Ordering};

/// Maximum number of attempts to read a session's statement and activity at one instant.
const TRIES: u32 = 20;

/// The statement that the client of a session sent, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionStatement {
    /// Not known.
    #[default]
    None,
    /// The session executes this statement.
    Runs(StatementKey),
    /// The session executes a statement whose query identifier is not known yet; with its message, if the session has
    /// waited long enough for that to be published.
    Unnamed(Option<MessageText>),
    /// The session executes no statement; this was the last one.
    Ran(StatementKey),
}

/// The text of a message, without constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageText {
    /// The text.
    pub text: Text,
    /// OID of the database.
    pub database_id: u32,
    /// OID of the user.
    pub user_id: u32,
}

impl SessionStatement {
    /// Its key, if it is known.
    pub fn key(&self) -> Option<StatementKey> {
        match self {
            SessionStatement::Runs(key) | SessionStatement::Ran(key) => Some(*key),
            SessionStatement::None | SessionStatement::Unnamed(_) => None,
        }
    }

    /// The text of its message, while its key is not known.
    pub fn message(&self) -> Option<&Text> {
        match self {
            SessionStatement::Unnamed(Some(message)) => Some(&message.text),
            _ => None,
        }
    }

    /// The statement in a copy of a slot's current, whose key is `last`.
    fn decode(bytes: &[u8], last: StatementKey) -> SessionStatement {
        match u64_at(bytes, current::BEGUN) != 0 {
            true if u32_at(bytes, current::KEY + key::BEFORE) != 0 => {
                SessionStatement::Unnamed(None)
            }
            _ if !last.is_identified() => SessionStatement::None,
            true => SessionStatement::Runs(last),
            false => SessionStatement::Ran(last),
        }
    }
}

impl MessageText {
    fn decode(bytes: &[u8]) -> Option<MessageText> {
        let kept = u32_at(bytes, message_text::BYTES);
        let text = bytes.get(message_text::TEXT..message_text::TEXT + kept as usize)?;
        let whole = u32_at(bytes, message_text::WHOLE).max(kept);
        let shown = shown(text, i32_at(bytes, message_text::ENCODING));
        // The text is shorter than the message because constants are removed; it is truncated only if it fills its
        // space.
        let full = message_text::TEXT + text.len() + 4 > message_text::SIZE;
        Some(MessageText {
            text: Text { shown, kept, whole: if full { whole } else { kept } },
            database_id: u32_at(bytes, message_text::DATABASE_ID),
            user_id: u32_at(bytes, message_text::USER_ID),
        })
    }
}

/// Whether the account belongs to a message whose time counts for the statement before it.
fn ends_statement(account: &str) -> bool {
    ["sync::", "close::", "flush::", "terminate::"].iter().any(|phase| account.starts_with(phase))
}

impl Segment {
    /// The statement of a slot's owner. Statements are never confused: until the statement of a message is known, the
    /// key is still that of the previous one, which is not returned.
    pub fn session_statement(&self, slot: u32) -> Result<SessionStatement, Error> {
        let Some(regions) = self.regions.statements.filter(|_| slot < self.header().slots) else {
            return Ok(SessionStatement::None);
        };
        let at = self.regions.entries.entry(slot) + entry::LOCAL_STATEMENTS as u64;
        if self.read_u32(at)? == 0 {
            return Ok(SessionStatement::None);
        }
        let tries = Tries::new(self);
        let at = regions.caches.entry(slot);
        let mut bytes = [0u8; current::SIZE];
        let mut found = SessionStatement::None;
        for _ in 0..TRIES {
            let quiet = self.read_under_seq(at, &mut bytes, &tries)?;
            let key = self.statement_key(FileKey::decode(&bytes, current::KEY))?;
            found = SessionStatement::decode(&bytes, key);
            if !matches!(found, SessionStatement::Unnamed(_)) {
                break;
            }
            if self.runs_account(slot, ends_statement)? {
                found = match key.is_identified() {
                    true => SessionStatement::Ran(key),
                    false => SessionStatement::None,
                };
            } else {
                found = SessionStatement::Unnamed(self.message_text(&regions, slot, &bytes)?);
            }
            fence(Ordering::Acquire);
            if quiet && self.read_u64(at)? == u64_at(&bytes, current::SEQ) {
                break;
            }
            // Another message has begun, or the statement has become known, so it is not certain which one the text
            // belongs to.
            found = SessionStatement::Unnamed(None);
        }
        Ok(found)
    }

    /// Whether the name of a slot's running account matches.
    fn runs_account(&self, slot: u32, is: impl Fn(&str) -> bool) -> Result<bool, Error> {
        let base = self.regions.books.entry(slot);
        let run = self.read_u32(base + book::RUN as u64)?;
        if run >= self.header().stats_per_book {
            return Ok(false);
        }
        let at = base + (book::SIZE + run as usize * head::SIZE + head::STAT) as u64;
        let Some(stat) = self.read_u32(at)?.checked_sub(1) else { return Ok(false) };
        Ok(self.stat_name(stat)?.is_some_and(|name| is(&name)))
    }

    /// The text of the message in progress in a copy of a slot's current; `None`: there is none, or it belongs to
    /// another message.
    pub(super) fn message_text(
        &self,
        regions: &StatementRegions,
        slot: u32,
        current: &[u8],
    ) -> Result<Option<MessageText>, Error> {
        let begun = u64_at(current, current::BEGUN);
        let has_text = u32_at(current, current::HAS_TEXT) != 0 && begun != 0;
        let end = (layout::MESSAGE_TEXT_OFFSET + message_text::SIZE) as u32;
        if !has_text || regions.caches.stride < end {
            return Ok(None);
        }
        let at = regions.caches.entry(slot) + layout::MESSAGE_TEXT_OFFSET as u64;
        let mut bytes = [0u8; message_text::SIZE];
        let before = self.read_u64(at + message_text::BEGUN as u64)?;
        fence(Ordering::Acquire);
        self.read(at, &mut bytes)?;
        fence(Ordering::Acquire);
        let after = self.read_u64(at + message_text::BEGUN as u64)?;
        Ok((before == begun && after == begun).then(|| MessageText::decode(&bytes)).flatten())
    }
}
