// SPDX-License-Identifier: PostgreSQL
//! Runs a verb of this command and reads what it prints.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// Maximum size of a verb's output, in bytes.
const MOST: u64 = 16 << 20;
/// Maximum size of its messages, in bytes; what follows is read and dropped.
const MOST_OF_MESSAGES: u64 = 64 << 10;

/// Runs `tally ARGUMENTS` and returns its standard output, in at most `limit`. The error is the verb's own message, or that its
/// output is too large, with `remedy`. The process is killed if the caller drops the future.
pub async fn run(arguments: &[String], limit: Duration, remedy: &str) -> Result<String, String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tally").args(arguments);
    output(command, limit, MOST).await.map_err(|error| match error {
        Failure::TooLarge => format!("the answer has more than {} MB; {remedy}", MOST >> 20),
        Failure::Other(text) => text,
    })
}

/// Why a process has no output.
#[derive(Debug, PartialEq)]
enum Failure {
    /// It prints more than is read.
    TooLarge,
    /// Anything else.
    Other(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Other(format!("tally could not be read: {error}"))
    }
}

/// What this command prints, at most `most` bytes.
async fn output(mut command: Command, limit: Duration, most: u64) -> Result<String, Failure> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Failure::Other(format!("tally could not be started: {error}")))?;
    // A process that is too slow or prints too much is killed with the future.
    match tokio::time::timeout(limit, collect(child, most)).await {
        Ok(collected) => collected,
        Err(_) => Err(Failure::Other(format!("no answer within {} s", limit.as_secs()))),
    }
}

async fn collect(mut child: Child, most: u64) -> Result<String, Failure> {
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Failure::Other("tally was started without pipes".into()));
    };
    // If one of them fails, the other is not waited for: nobody reads a pipe any more that the process may be filling.
    let (output, messages) = tokio::try_join!(whole(out, most), beginning(err))?;
    let status = child.wait().await?;
    let messages = String::from_utf8_lossy(&messages);
    if !status.success() {
        let text = messages.trim();
        let text = if text.is_empty() { format!("tally ended with {status}") } else { text.into() };
        return Err(Failure::Other(text));
    }
    let not_utf8 = |_| Failure::Other("tally printed something that is not UTF-8".into());
    String::from_utf8(output).map_err(not_utf8)
}

/// All bytes of a pipe.
async fn whole(pipe: impl AsyncRead + Unpin, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    pipe.take(most + 1).read_to_end(&mut bytes).await?;
    match bytes.len() as u64 > most {
        true => Err(Failure::TooLarge),
        false => Ok(bytes),
    }
}

/// The first bytes of a pipe; the others are read, too, so that the process can go on.
async fn beginning(mut pipe: impl AsyncRead + Unpin) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    (&mut pipe).take(MOST_OF_MESSAGES).read_to_end(&mut bytes).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any of these commands takes.
    const LIMIT: Duration = Duration::from_secs(600);

    fn printed(script: &str, most: u64) -> Result<String, Failure> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(output(command, LIMIT, most))
    }

    #[test]
    fn a_process_that_prints_without_end_is_not_waited_for() {
        assert_eq!(printed("printf 12345", 4), Err(Failure::TooLarge));
        assert_eq!(printed("printf 1234", 4), Ok("1234".into()));
        assert_eq!(printed("while :; do echo more; done", 100_000), Err(Failure::TooLarge));
    }

    #[test]
    fn messages_beyond_a_limit_do_not_hold_up_the_process() {
        let many = "i=0; while [ $i -lt 20000 ]; do echo message $i >&2; i=$((i + 1)); done";
        assert_eq!(printed(&format!("{many}; printf done"), 4), Ok("done".into()));
        let Err(Failure::Other(text)) = printed(&format!("{many}; exit 3"), 4) else { panic!() };
        assert!(text.starts_with("message 0\n") && text.len() <= MOST_OF_MESSAGES as usize);
        assert_eq!(
            printed("exit 3", 4),
            Err(Failure::Other("tally ended with exit status: 3".into()))
        );
    }
}
