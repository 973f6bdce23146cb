// SPDX-License-Identifier: PostgreSQL
//! Object storage in memory, which works, fails and lies as a history dictates.

use futures_util::stream::BoxStream;
use futures_util::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The behavior for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Works,
    /// It returns an error.
    Refuses,
    /// It carries out the request, but returns an error.
    AnswerIsLost,
    /// It acknowledges a write, but does not store it.
    Lies,
}

#[derive(Debug)]
struct State {
    behaviours: VecDeque<Behaviour>,
    lied: bool,
    changes: u64,
}

/// Objects, and a list of behaviors for the next requests.
#[derive(Debug, Clone)]
pub struct Storage {
    objects: Arc<InMemory>,
    state: Arc<Mutex<State>>,
}

fn error() -> Error {
    Error::Generic { store: "simulation", source: "it does not work now".into() }
}

impl Storage {
    pub fn new() -> Storage {
        let state = State { behaviours: VecDeque::new(), lied: false, changes: 0 };
        Storage { objects: Arc::default(), state: Arc::new(Mutex::new(state)) }
    }

    /// Set the behavior for the next requests; after these, it works.
    pub fn set(&self, behaviours: &[Behaviour]) {
        self.state.lock().unwrap().behaviours = behaviours.iter().copied().collect();
    }

    /// Whether it has lied.
    pub fn lied(&self) -> bool {
        self.state.lock().unwrap().lied
    }

    /// Number of requests so far that may have changed objects.
    pub fn changes(&self) -> u64 {
        self.state.lock().unwrap().changes
    }

    /// The same objects without faults.
    pub fn objects(&self) -> Arc<InMemory> {
        self.objects.clone()
    }

    fn next(&self, changes: bool) -> Behaviour {
        let mut state = self.state.lock().unwrap();
        state.changes += u64::from(changes);
        state.behaviours.pop_front().unwrap_or(Behaviour::Works)
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulation")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Storage {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        match self.next(true) {
            Behaviour::Works => self.objects.put_opts(location, payload, options).await,
            Behaviour::Refuses => Err(error()),
            Behaviour::AnswerIsLost => {
                self.objects.put_opts(location, payload, options).await?;
                Err(error())
            }
            Behaviour::Lies => {
                self.state.lock().unwrap().lied = true;
                Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.next(false) {
            Behaviour::Works | Behaviour::Lies => self.objects.get_opts(location, options).await,
            Behaviour::Refuses | Behaviour::AnswerIsLost => Err(error()),
        }
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let fail = || futures_util::stream::iter([Err(error())]);
        match self.next(true) {
            Behaviour::Works | Behaviour::Lies => self.objects.delete_stream(locations),
            Behaviour::Refuses => fail().boxed(),
            Behaviour::AnswerIsLost => {
                let deleted = self.objects.delete_stream(locations);
                deleted.filter_map(|_| async { Some(Err(error())) }).boxed()
            }
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}
