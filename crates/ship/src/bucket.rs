// SPDX-License-Identifier: PostgreSQL
//! A bucket and a prefix in it: reading, writing, listing and removing objects, one at a time.
//!
//! Credentials come from the environment, and only the library's builders hold them. A request that
//! fails is not retried here; the caller knows when to try again. All requests end at the deadline,
//! which another thread may set.

use crate::error::Error;
use crate::layout::VERSION;
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
pub(crate) use object_store::UpdateVersion;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig,
};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

/// The file of an hour takes long on a slow line; the library's default is 30 s. AWS_TIMEOUT and its counterparts
/// for other clouds take precedence.
const TIMEOUT: &str = "300 seconds";
/// Maximum size of an object to read, several times that of a recording's largest file, bytes.
const LARGEST: u64 = 1 << 30;
/// Maximum number of objects to list: a year of a thousand hosts.
const MOST: usize = 10_000_000;

/// A bucket and a prefix.
#[derive(Debug)]
pub struct Bucket {
    runtime: Runtime,
    store: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    url: String,
    deadline: watch::Sender<Option<Instant>>,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name relative to the prefix and version.
    pub key: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// When it was written, according to the bucket's clock, microseconds since 1970.
    pub written_us: i64,
}

/// Sets the deadline of a bucket's requests.
#[derive(Debug, Clone)]
pub struct Deadline(watch::Sender<Option<Instant>>);

impl Deadline {
    /// All requests end after this time.
    pub fn set(&self, after: Duration) {
        self.0.send_replace(Some(Instant::now() + after));
    }
}

fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The address without parts that may be credentials.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string().trim_end_matches('/').to_string()
}

fn is_azure(url: &Url) -> bool {
    matches!(url.scheme(), "az" | "azure" | "abfs" | "abfss")
}

fn parse(text: &str) -> Result<Url, Error> {
    if !text.contains("://") {
        return Err(Error::Address { shown: "bucket".into(), reason: "not a URL".into() });
    }
    let url = Url::parse(text).map_err(|error| {
        // Text that cannot be parsed may still contain a password.
        let scheme = text.split("://").next().unwrap_or_default();
        Error::Address { shown: format!("{scheme}://…"), reason: error.to_string() }
    })?;
    // az://CONTAINER@ACCOUNT does not contain a user.
    let user = !url.username().is_empty() && !is_azure(&url);
    if user || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(Error::Credentials);
    }
    Ok(url)
}

/// A builder for this cloud, configured by the environment.
macro_rules! from_environment {
    ($builder:ident, $key:ident, $url:expr, $timeout:expr) => {{
        let mut builder = $builder::from_env().with_url($url).with_retry(no_retries());
        if std::env::var_os($timeout).is_none() {
            let key = object_store::ClientConfigKey::Timeout;
            builder = builder.with_config($key::Client(key), TIMEOUT);
        }
        builder.build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
    }};
}

fn connect(url: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
    use object_store::aws::AmazonS3ConfigKey;
    use object_store::azure::AzureConfigKey;
    use object_store::gcp::GoogleConfigKey;
    match url.scheme() {
        "gs" => from_environment!(
            GoogleCloudStorageBuilder,
            GoogleConfigKey,
            url.as_str(),
            "GOOGLE_TIMEOUT"
        ),
        "s3" | "s3a" => {
            from_environment!(AmazonS3Builder, AmazonS3ConfigKey, url.as_str(), "AWS_TIMEOUT")
        }
        _ => {
            from_environment!(MicrosoftAzureBuilder, AzureConfigKey, url.as_str(), "AZURE_TIMEOUT")
        }
    }
}

impl Bucket {
    /// The bucket and prefix of an address. This makes no request, except that it creates the directory of
    /// a file address.
    pub fn open(text: &str) -> Result<Bucket, Error> {
        let url = parse(text)?;
        let refused = |reason: String| Error::Address { shown: shown(&url), reason };
        let (store, prefix) = match url.scheme() {
            "file" => {
                let path = url.to_file_path().map_err(|()| refused("not a local path".into()))?;
                files::folder(&path, files::Access::Owner).map_err(Error::io(&path))?;
                let store = LocalFileSystem::new_with_prefix(&path)
                    .map_err(|error| Error::of_store(&shown(&url), &error))?;
                (Arc::new(store) as Arc<dyn ObjectStore>, ObjectPath::default())
            }
            "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" => {
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(refused("the bucket is missing".into()));
                }
                // The process may already have a provider.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let prefix = ObjectPath::from_url_path(url.path())
                    .map_err(|error| refused(error.to_string()))?;
                let store = connect(&url).map_err(|error| Error::of_store(&shown(&url), &error))?;
                (store, prefix)
            }
            other => return Err(refused(format!("{other}:// is not supported"))),
        };
        Bucket::of_store(store, prefix, shown(&url))
    }

    /// This prefix of a store; `url` names it in messages and in the spool.
    pub fn of_store(
        store: Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        url: String,
    ) -> Result<Bucket, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::io(std::path::Path::new("/")))?;
        let (deadline, _) = watch::channel(None);
        Ok(Bucket { runtime, store, prefix, url, deadline })
    }

    /// The address, without credentials.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the deadline of requests, from any thread.
    pub fn deadline(&self) -> Deadline {
        Deadline(self.deadline.clone())
    }

    /// Call `what`; if it takes longer than this, fail as if the bucket did not respond.
    pub fn within<T>(
        &self,
        time: Duration,
        what: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.deadline().set(time);
        let done = what();
        self.deadline.send_replace(None);
        match done {
            Err(Error::Ended) => Err(Error::Unavailable {
                url: self.url.clone(),
                reason: format!("no response within {} s", time.as_secs()),
            }),
            done => done,
        }
    }

    fn path(&self, key: &str) -> ObjectPath {
        ObjectPath::from_iter(
            self.prefix.parts().chain([VERSION.into()]).chain(key.split('/').map(Into::into)),
        )
    }

    /// The result of a request, unless the deadline passes first.
    fn wait<T>(
        &self,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, Error> {
        let mut deadline = self.deadline.subscribe();
        self.runtime.block_on(async {
            let ended = async {
                loop {
                    let until = *deadline.borrow_and_update();
                    if let Some(until) = until {
                        return tokio::time::sleep_until(until).await;
                    }
                    if deadline.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            tokio::select! {
                biased;
                result = request => Ok(result),
                () = ended => Err(Error::Ended),
            }
        })
    }

    fn failed(&self, error: StoreError) -> Error {
        Error::of_store(&self.url, &error)
    }

    fn put_in_mode(
        &self,
        key: &str,
        bytes: Bytes,
        mode: PutMode,
    ) -> Result<Result<(), StoreError>, Error> {
        let (path, options) = (self.path(key), PutOptions::from(mode));
        let put = self.store.put_opts(&path, bytes.into(), options);
        self.wait(async { put.await.map(drop) })
    }

    /// Write an object, whether or not it exists.
    pub fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        self.put_in_mode(key, bytes, PutMode::Overwrite)?.map_err(|error| self.failed(error))
    }

    /// Write an object unless it exists. Returns whether it was written.
    pub fn create(&self, key: &str, bytes: Bytes) -> Result<bool, Error> {
        match self.put_in_mode(key, bytes, PutMode::Create)? {
            Ok(()) => Ok(true),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Replace this version of an object. Returns whether it was still the current version.
    pub fn replace(&self, key: &str, bytes: Bytes, version: UpdateVersion) -> Result<bool, Error> {
        match self.put_in_mode(key, bytes.clone(), PutMode::Update(version))? {
            Ok(()) => Ok(true),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(false),
            // A directory has no conditional replacement. If two processes remove the file, only one can create it.
            Err(StoreError::NotImplemented { .. }) => {
                self.delete(key)?;
                self.create(key, bytes)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The contents and version of an object; `None`: it does not exist.
    pub fn get(&self, key: &str) -> Result<Option<(Bytes, UpdateVersion)>, Error> {
        self.get_at_most(key, LARGEST)
    }

    fn get_at_most(&self, key: &str, limit: u64) -> Result<Option<(Bytes, UpdateVersion)>, Error> {
        let path = self.path(key);
        let read = self.wait(async {
            let found = self.store.get(&path).await?;
            let version = UpdateVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            // Do not trust the size that the bucket reports.
            let (mut parts, mut bytes) = (found.into_stream(), Vec::new());
            while let Some(part) = parts.next().await.transpose()? {
                if (bytes.len() + part.len()) as u64 > limit {
                    return Ok(None);
                }
                bytes.extend_from_slice(&part);
            }
            Ok(Some((bytes.into(), version)))
        })?;
        match read {
            Ok(None) => Err(self.too_much(format!(
                "object {path} is larger than {} MB, the limit for one object",
                limit >> 20
            ))),
            Ok(found) => Ok(found),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn too_much(&self, reason: String) -> Error {
        let remedy = "Remove objects that tally did not ship, or specify another prefix";
        Error::Refused { url: self.url.clone(), reason, remedy }
    }

    /// Remove an object, whether or not it exists.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        let path = self.path(key);
        match self.wait(self.store.delete(&path))? {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The objects in a folder and its subfolders, sorted by name.
    pub fn list(&self, folder: &str) -> Result<Vec<Listed>, Error> {
        self.list_at_most(folder, MOST)
    }

    fn list_at_most(&self, folder: &str, limit: usize) -> Result<Vec<Listed>, Error> {
        let folder = self.path(folder);
        let root = self.path("").to_string();
        let mut list = self.store.list(Some(&folder));
        let mut found = Vec::new();
        let all = self
            .wait(async {
                while let Some(item) = list.next().await {
                    if found.len() == limit {
                        return Ok(false);
                    }
                    let item = match item {
                        // The file was removed while its directory was being read.
                        Err(StoreError::NotFound { .. }) => continue,
                        item => item?,
                    };
                    let path = item.location.to_string();
                    let Some(key) = path.strip_prefix(&root) else { continue };
                    found.push(Listed {
                        key: key.trim_start_matches('/').to_string(),
                        bytes: item.size,
                        written_us: item.last_modified.timestamp_micros(),
                    });
                }
                Ok(true)
            })?
            .map_err(|error| self.failed(error))?;
        if !all {
            let reason =
                format!("{folder} has more than {limit} objects, the limit for one listing");
            return Err(self.too_much(reason));
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_credentials_is_refused_without_repeating_them() {
        for text in [
            "s3://key:SECRET@bucket/prefix",
            "s3://SECRET@bucket/prefix",
            "az://container/prefix?sv=1&sig=SECRET",
            "az://container:SECRET@account/prefix",
            "gs://bucket/prefix#SECRET",
        ] {
            let error = Bucket::open(text).unwrap_err();
            assert!(error.is_usage(), "{text}");
            assert!(!error.to_string().contains("SECRET"), "{error}");
            assert!(error.to_string().contains("environment"), "{error}");
        }
        let error = Bucket::open("s3://key:SECRET@:x/").unwrap_err();
        assert!(error.is_usage() && !error.to_string().contains("SECRET"), "{error}");
    }

    #[test]
    fn other_addresses_are_refused_with_those_that_are_supported() {
        for text in ["ftp://host/x", "s3:///prefix", "file://host/x"] {
            let error = Bucket::open(text).unwrap_err();
            assert!(error.is_usage(), "{text}: {error}");
            assert!(error.to_string().contains("s3://BUCKET/PREFIX"), "{error}");
        }
    }

    #[test]
    fn an_object_is_created_once_replaced_by_version_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().join("new").display());
        let bucket = Bucket::open(&url).unwrap();
        assert_eq!(bucket.get("a/b=1/x").unwrap(), None);
        assert!(bucket.create("a/b=1/x", "one".into()).unwrap());
        assert!(!bucket.create("a/b=1/x", "two".into()).unwrap());
        let (bytes, version) = bucket.get("a/b=1/x").unwrap().unwrap();
        assert_eq!(&bytes[..], b"one");
        assert!(bucket.replace("a/b=1/x", "three".into(), version).unwrap());
        bucket.put("a/b=2/y", "four".into()).unwrap();
        let keys = |folder: &str| -> Vec<String> {
            bucket.list(folder).unwrap().into_iter().map(|object| object.key).collect()
        };
        assert_eq!(keys("a"), ["a/b=1/x", "a/b=2/y"]);
        assert_eq!(keys("a/b=2"), ["a/b=2/y"]);
        assert_eq!(keys("none"), [""; 0]);
        let error = bucket.list_at_most("a", 1).unwrap_err().to_string();
        assert!(error.contains("more than 1 objects") && error.contains("prefix"), "{error}");
        bucket.put("a/b=2/y", vec![0; (1 << 20) + 1].into()).unwrap();
        let error = bucket.get_at_most("a/b=2/y", 1 << 20).unwrap_err().to_string();
        assert!(error.contains("larger than 1 MB"), "{error}");
        assert!(bucket.get_at_most("a/b=2/y", (1 << 20) + 1).unwrap().is_some());
        bucket.delete("a/b=1/x").unwrap();
        bucket.delete("a/b=1/x").unwrap();
        assert_eq!(keys("a"), ["a/b=2/y"]);
        bucket.deadline().set(Duration::ZERO);
    }
}
