// SPDX-License-Identifier: PostgreSQL
//! Runs a verb of this command and reads what it prints.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Maximum size of a verb's output and of its messages, in bytes.
const MOST: u64 = 16 << 20;

/// Runs `tally ARGUMENTS` and returns its standard output, in at most `limit`. The error is the verb's own message. The
/// process is killed if the caller drops the future.
pub async fn run(arguments: &[String], limit: Duration) -> Result<String, String> {
    let mut child = Command::new("/proc/self/exe")
        .arg0("tally")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("tally could not be started: {error}"))?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("tally was started without pipes".into());
    };
    let (mut output, mut messages) = (Vec::new(), Vec::new());
    let (mut out, mut err) = (out.take(MOST + 1), err.take(MOST));
    let whole = async {
        let (read_out, read_err, ended) = tokio::join!(
            out.read_to_end(&mut output),
            err.read_to_end(&mut messages),
            child.wait()
        );
        read_out?;
        read_err?;
        ended
    };
    let ended = tokio::time::timeout(limit, whole).await;
    let status = match ended {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return Err(format!("tally could not be read: {error}")),
        Err(_) => return Err(format!("no answer within {} s", limit.as_secs())),
    };
    let messages = String::from_utf8_lossy(&messages);
    if output.len() as u64 > MOST {
        return Err(format!("the answer has more than {} MB; ask for less", MOST >> 20));
    }
    if !status.success() {
        let text = messages.trim();
        let text = if text.is_empty() { format!("tally ended with {status}") } else { text.into() };
        return Err(text);
    }
    String::from_utf8(output).map_err(|_| "tally printed something that is not UTF-8".into())
}
