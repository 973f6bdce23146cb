// SPDX-License-Identifier: PostgreSQL
//! Requests of clients and their responses, between HTTP and the thread that has the figures.

use std::sync::Arc;

use error::Error;
use hyper::StatusCode;
use tokio::sync::oneshot;
use view::document::Document;
use view::escape;

use super::metrics::Form;
use super::page::LivePage;

/// The resources that can be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The page.
    Page,
    /// The report of the page as JSON, without its tables over time.
    Report,
    /// The report with them.
    ReportWithParts,
    /// The metrics, in a format.
    Metrics(Form),
}

/// A request, and the channel for its response.
#[derive(Debug)]
pub struct Request {
    /// What is requested.
    pub what: Resource,
    /// The query string of the URL.
    pub query: String,
    /// Receives the response, or why there is none.
    pub answer: oneshot::Sender<Result<HttpReply, Refusal>>,
}

/// Why there is no response.
pub type Refusal = (StatusCode, String);

/// A response.
#[derive(Debug, Clone)]
pub struct HttpReply {
    /// The content.
    pub body: Arc<[u8]>,
    /// ETag, which changes with the content; metrics have none.
    pub tag: Option<String>,
    /// Content-Security-Policy of the page.
    pub policy: Option<Arc<str>>,
}

impl HttpReply {
    /// The page of a document; without a document, a page that says why and reloads.
    pub fn page(document: Option<&Document>, why: &str) -> Result<HttpReply, Error> {
        let page = document.map_or_else(|| Ok(LivePage::waiting(why)), LivePage::render)?;
        let policy = Some(page.policy.into());
        Ok(HttpReply { body: page.html.into_bytes().into(), tag: None, policy })
    }

    /// A document as JSON, with this ETag; without a document, an error that says why.
    pub fn report(
        document: Option<&Document>,
        why: &str,
        tag: Option<String>,
    ) -> Result<HttpReply, Error> {
        let Some(document) = document else {
            return Err(Error::Failed(format!("nothing to show yet: {why}")));
        };
        let json = serde_json::to_string(document)?;
        let body = escape::json(&json).into_owned().into_bytes().into();
        Ok(HttpReply { body, tag, policy: None })
    }
}
