// SPDX-License-Identifier: PostgreSQL
//! The program that writes a segment, and the names of its settings.

use crate::sampling;
use crate::segment::Segment;

/// The program that writes a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Producer {
    /// The extension, in a server.
    Server,
    /// The Java agent (client/java).
    JavaAgent,
    /// The library for programs that use libpq (client/libpq).
    Libpq,
    /// `tally`, which samples a server.
    Sampler,
}

/// What a segment has a limited number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProducerLimit {
    /// Sessions, or threads of a client, at a time.
    Slots,
    /// Statistics of each.
    Statistics,
    /// Names of statistics.
    Names,
    /// Groups of those that have ended.
    Groups,
}

impl Producer {
    /// The producer with this name in a segment's header.
    pub fn from_text(producer: &str) -> Producer {
        match producer.split([' ', '/']).next() {
            Some("pgtally-agent") => Producer::JavaAgent,
            Some("libtally_pq") => Producer::Libpq,
            _ if sampling::distance_of(producer).is_some() => Producer::Sampler,
            _ => Producer::Server,
        }
    }

    /// Whether it is in a client of a server.
    pub fn is_client(self) -> bool {
        matches!(self, Producer::JavaAgent | Producer::Libpq)
    }

    /// The setting of a limit, as users know it; `None` if it is fixed.
    pub fn setting(self, limit: ProducerLimit) -> Option<&'static str> {
        match (self, limit) {
            (Producer::Server, ProducerLimit::Slots) => Some("pg_tally.max_slots"),
            (Producer::Server, ProducerLimit::Statistics) => Some("pg_tally.max_statistics"),
            (Producer::Server, ProducerLimit::Names) => Some("pg_tally.max_names"),
            (Producer::Server, ProducerLimit::Groups) => Some("pg_tally.max_groups"),
            (Producer::JavaAgent, ProducerLimit::Slots) => Some("the agent's option threads"),
            (Producer::JavaAgent, ProducerLimit::Statistics) => {
                Some("the agent's option statistics")
            }
            (Producer::Libpq, ProducerLimit::Slots) => Some("threads in PGTALLY_LIBPQ"),
            _ => None,
        }
    }

    /// What to do if a limit was reached.
    pub fn remedy(self, limit: ProducerLimit) -> String {
        match (self, self.setting(limit)) {
            (_, Some(setting)) => format!("raise {setting}"),
            (Producer::JavaAgent, None) if limit == ProducerLimit::Names => {
                "time fewer methods (the agent's option methods)".into()
            }
            _ if limit == ProducerLimit::Groups => "their figures are in its totals".into(),
            _ => "this limit is fixed".into(),
        }
    }
}

impl Segment {
    /// The program that writes it.
    pub fn producer(&self) -> Producer {
        Producer::from_text(&self.header().producer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_is_known_by_its_name_and_names_its_own_settings() {
        for (text, producer, setting) in [
            ("pg_tally 0.3.0", Producer::Server, "pg_tally.max_slots"),
            ("pgtally-agent 0.3.0", Producer::JavaAgent, "the agent's option threads"),
            ("libtally_pq 0.3.0", Producer::Libpq, "threads in PGTALLY_LIBPQ"),
        ] {
            assert_eq!(Producer::from_text(text), producer);
            assert_eq!(producer.setting(ProducerLimit::Slots), Some(setting));
        }
        let sampler = Producer::from_text(&sampling::producer(10));
        assert_eq!((sampler, sampler.is_client()), (Producer::Sampler, false));
        assert!(Producer::JavaAgent
            .remedy(ProducerLimit::Names)
            .contains("the agent's option methods"));
        for limit in [
            ProducerLimit::Slots,
            ProducerLimit::Statistics,
            ProducerLimit::Names,
            ProducerLimit::Groups,
        ] {
            assert!(Producer::Server.remedy(limit).starts_with("raise pg_tally."));
            for other in [Producer::JavaAgent, Producer::Libpq, Producer::Sampler] {
                assert!(!other.remedy(limit).contains("pg_tally."), "{limit:?}");
            }
        }
    }
}
