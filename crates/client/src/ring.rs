// SPDX-License-Identifier: PostgreSQL
//! The calls of a Java client, read from the ring of its segment (client/java).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use error::Error;
use live::target;
use segment::calls::CallTexts;
use segment::{Segment, TraceKind, TraceReader, TraceRequest, TraceSwitch};

use super::call::{Call, ClientCall, Span};

/// How often to renew the request.
const RENEW: Duration = Duration::from_secs(1);

/// A client whose calls are read.
pub struct Client {
    segment: Segment,
    switch: TraceSwitch,
    reader: TraceReader,
    renewed: Instant,
    waits: HashMap<i32, Vec<Span>>,
    ids: HashMap<u32, String>,
    texts: CallTexts,
    /// Records that were overwritten before they were read.
    pub lost: u64,
}

impl Client {
    /// Starts reading the client with this segment.
    pub fn open(path: &str) -> Result<Client, Error> {
        Client::from_segment(target::open(Some(path))?, path)
    }

    /// The same for an open segment; errors name it `path`.
    pub fn from_segment(segment: Segment, path: &str) -> Result<Client, Error> {
        if segment.server_runs() == Some(false) {
            return Err(Error::Failed(format!("{path}: the client process is no longer running")));
        }
        let mut switch = TraceSwitch::open(&segment)?;
        let reader = switch.arm(&TraceRequest::default(), 1)?.pop().ok_or_else(|| {
            Error::Failed(format!("{path}: another tally is already reading this client's calls"))
        })?;
        Ok(Client {
            segment,
            switch,
            reader,
            renewed: Instant::now(),
            waits: HashMap::new(),
            ids: HashMap::new(),
            texts: CallTexts::new(),
            lost: 0,
        })
    }

    /// Whether its process runs, as far as we can see.
    pub fn runs(&self) -> bool {
        self.segment.server_runs() != Some(false)
    }

    /// The calls that have ended since the last time.
    pub fn poll(&mut self) -> Result<Vec<ClientCall>, Error> {
        if self.renewed.elapsed() >= RENEW {
            self.renewed = Instant::now();
            self.switch.renew();
        }
        let mut records = Vec::new();
        let mut lost = 0;
        lost += self.reader.poll(&self.segment, |before, record| {
            lost += before;
            records.push(record);
        })?;
        if lost > 0 {
            self.lost += lost;
            // The remaining waits of a call would be incomplete.
            self.waits.clear();
        }
        let mut calls = Vec::new();
        for record in records {
            let clock = self.segment.clock();
            let span = (clock.ns_of(record.tick), clock.ns_of(record.tick + record.ticks));
            match record.kind {
                TraceKind::CallWait { pid } => self.waits.entry(pid).or_default().push(span),
                TraceKind::Call {
                    fetches,
                    failed,
                    statistic,
                    pid,
                    first,
                    messages,
                    rows,
                    collecting,
                } => {
                    let waits = self.waits.remove(&pid).unwrap_or_default();
                    let (id, text) = self.statement(statistic)?;
                    calls.push(ClientCall {
                        call: Call { span, waits, collecting },
                        fetches,
                        failed,
                        id,
                        text,
                        pid,
                        first,
                        messages: messages.into(),
                        rows,
                    });
                }
                _ => {}
            }
        }
        Ok(calls)
    }

    fn statement(&mut self, statistic: Option<u32>) -> Result<(String, String), Error> {
        let Some(statistic) = statistic else { return Ok(Default::default()) };
        if !self.ids.contains_key(&statistic) {
            let name = self.segment.stat_name(statistic)?.unwrap_or_default();
            let id = name.rsplit("::").next().unwrap_or_default().to_string();
            self.texts = self.segment.call_texts()?;
            self.ids.insert(statistic, id);
        }
        let id = self.ids.get(&statistic).cloned().unwrap_or_default();
        let text = self.texts.get(&id).cloned().unwrap_or_default();
        Ok((id, text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}
