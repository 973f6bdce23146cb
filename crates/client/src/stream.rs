// SPDX-License-Identifier: PostgreSQL
//! Calls as JSON lines, from the client's machine to the server's: `tally calls --stream` writes them, and
//! `tally trace --client -` reads them.

use std::io::{BufRead, Read, Write};
use std::sync::mpsc::{sync_channel, Receiver, TryRecvError};

use error::Error;
use serde::{Deserialize, Serialize};

use super::call::ClientCall;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum ClientStreamEntry {
    /// A call that has ended.
    Call(ClientCall),
    /// Number of records so far that were overwritten before they were read.
    Lost { records: u64 },
}

/// Writes calls, and the number of lost records if it has changed.
pub fn write(out: &mut impl Write, calls: Vec<ClientCall>, lost: Option<u64>) -> Result<(), Error> {
    let lost = lost.map(|records| ClientStreamEntry::Lost { records });
    for line in calls.into_iter().map(ClientStreamEntry::Call).chain(lost) {
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

/// Maximum length of a line, bytes, and maximum number of unread lines: the input comes from another machine.
const LONGEST: u64 = 1 << 20;
const MOST: usize = 1 << 14;

/// A stream of calls.
pub struct Stream {
    lines: Receiver<Result<ClientStreamEntry, String>>,
    /// Records that were lost on the other machine.
    pub lost: u64,
    ended: bool,
}

impl Stream {
    /// Reads in a separate thread, which ends with the stream or the program.
    pub fn start(mut input: impl BufRead + Send + 'static) -> Stream {
        let (sender, lines) = sync_channel(MOST);
        std::thread::spawn(move || {
            for number in 1u64.. {
                let mut line = Vec::new();
                let line = match input.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
                    Ok(0) => return,
                    Ok(length) if length as u64 == LONGEST => {
                        Err(format!("line {number} is longer than {} kB", LONGEST >> 10))
                    }
                    Ok(_) => serde_json::from_slice(&line).map_err(|error| {
                        format!(
                            "line {number}: {error}; expected the output of `tally calls --stream`"
                        )
                    }),
                    Err(error) => Err(error.to_string()),
                };
                let failed = line.is_err();
                if sender.send(line).is_err() || failed {
                    return;
                }
            }
        });
        Stream { lines, lost: 0, ended: false }
    }

    /// The calls that have come since the last time.
    pub fn poll(&mut self) -> Result<Vec<ClientCall>, Error> {
        let mut calls = Vec::new();
        loop {
            match self.lines.try_recv() {
                Ok(Ok(ClientStreamEntry::Call(call))) => calls.push(call),
                Ok(Ok(ClientStreamEntry::Lost { records })) => self.lost = records,
                Ok(Err(why)) => return Err(Error::Failed(format!("standard input, {why}"))),
                Err(TryRecvError::Empty) => return Ok(calls),
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return Ok(calls);
                }
            }
        }
    }

    /// Whether the stream has ended.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static [u8]) -> Result<(Vec<ClientCall>, u64), Error> {
        let mut stream = Stream::start(text);
        let mut calls = Vec::new();
        while !stream.has_ended() {
            calls.extend(stream.poll()?);
        }
        Ok((calls, stream.lost))
    }

    #[test]
    fn what_is_written_is_read() {
        let call = ClientCall { text: "select ?".into(), first: Some(7), ..ClientCall::default() };
        let mut text = Vec::new();
        write(&mut text, vec![call.clone(), ClientCall::default()], None).unwrap();
        write(&mut text, Vec::new(), Some(3)).unwrap();
        let (calls, lost) = read(text.leak()).unwrap();
        assert_eq!((calls, lost), (vec![call, ClientCall::default()], 3));
    }

    #[test]
    fn a_line_of_another_kind_is_refused() {
        let error = read(b"{\"what\":\"lost\",\"records\":1}\nhello\n").unwrap_err().to_string();
        assert!(error.contains("standard input, line 2") && error.contains("--stream"), "{error}");
        // An endless line does not fill memory.
        let endless = Stream::start(std::io::BufReader::new(std::io::repeat(b' ')));
        let error = endless.lines.recv().unwrap().unwrap_err();
        assert!(error.contains("line 1 is longer than 1024 kB"), "{error}");
    }
}
