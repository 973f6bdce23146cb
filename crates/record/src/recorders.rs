// SPDX-License-Identifier: PostgreSQL
//! The recorder of the server and, with `--client`, that of its client. Their intervals end at the same time.

use std::path::Path;

use error::Error;
use live::target::{self, SegmentSource};
use recording::RunRow;

use super::recorder::Recorder;
use super::shipping::Destination;
use super::summary::RecordSummary;
use super::RecordArgs;

/// One or two recorders.
#[derive(Debug)]
pub struct Recorders<'a> {
    /// The recorder of the server.
    pub server: Recorder<'a>,
    client: Option<Recorder<'a>>,
}

impl<'a> Recorders<'a> {
    /// Recorders of the server at this place, and of the client that the arguments name.
    pub fn new(
        args: &'a RecordArgs,
        place: SegmentSource,
        destination: Destination,
    ) -> Result<Self, Error> {
        let client = args.client.as_deref().map(|who| of_client(args, who, &destination));
        let client = client.transpose()?;
        Ok(Self { server: Recorder::new(args, place, destination), client })
    }

    /// Reads both, and records what has happened since the last call; see [`Recorder::look`].
    pub fn look(&mut self, last: bool) -> Result<(), Error> {
        self.server.look(last)?;
        self.client.as_mut().map_or(Ok(()), |client| client.look(last))
    }

    /// What cannot wait until the end of the interval.
    pub fn follow(&mut self) {
        self.server.follow_slow_executions();
    }

    /// Adds output of the command.
    pub fn ran(&mut self, rows: Vec<RunRow>) {
        self.server.ran(rows);
    }

    /// Messages for the user since the last call.
    pub fn messages(&mut self) -> Vec<String> {
        let mut messages: Vec<String> = self.server.messages.drain(..).collect();
        if let Some(client) = &mut self.client {
            messages.extend(client.messages.drain(..).map(of_the_client));
        }
        messages
    }

    /// Bytes written.
    pub fn size(&self) -> u64 {
        self.server.size() + self.client.as_ref().map_or(0, Recorder::size)
    }

    /// Ends both recordings. Returns what was recorded, and messages for the user.
    pub fn close(self) -> Result<(RecordSummary, Vec<String>), Error> {
        let client = self.client.map(Recorder::close);
        let (mut summary, mut messages) = self.server.close()?;
        if let Some((of_client, last)) = client.transpose()? {
            messages.extend(last.into_iter().map(of_the_client));
            messages.push(of_the_client(of_client.line()));
            summary.client = Some(Box::new(of_client));
        }
        Ok((summary, messages))
    }
}

fn of_the_client(text: String) -> String {
    format!("client: {text}")
}

fn of_client<'a>(
    args: &'a RecordArgs,
    who: &str,
    server: &Destination,
) -> Result<Recorder<'a>, Error> {
    if server.shipping.is_some() {
        let text = "--client requires a directory as --output; to ship the client's figures, record it separately";
        return Err(Error::Usage(text.into()));
    }
    let place = SegmentSource::File(target::open_client(Some(who))?.segment_path().clone());
    let directory = Path::new(&server.directory).join(recording::CLIENT_DIRECTORY);
    Ok(Recorder::new(args, place, Destination { directory, shipping: None }))
}
