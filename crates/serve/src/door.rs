// SPDX-License-Identifier: PostgreSQL
//! Who may read, and how connections are encrypted, as the arguments say.

use std::sync::Arc;

use crate::access::{self, Access, TokenFile};
use crate::addresses::is_tcp;
use crate::args::ServeArgs;
use crate::gate::{self, Gate};
use crate::listen::Listener;
use crate::tls::Tls;
use error::Error;

/// Who may read, and how connections are encrypted.
#[derive(Debug)]
pub(crate) struct Door {
    /// Who may read.
    pub(crate) access: Arc<Access>,
    /// How connections are encrypted.
    pub(crate) tls: Option<Tls>,
}

impl Door {
    /// As the arguments say.
    pub(crate) fn open(args: &ServeArgs) -> Result<Door, Error> {
        let access = match &args.token_file {
            Some(path) => Access::Listed(TokenFile::open(path)?),
            None if args.no_token || !is_tcp(&args.listen) => Access::Anybody,
            None => Access::Printed(access::random_token()),
        };
        let files = args.tls_cert.as_deref().zip(args.tls_key.as_deref());
        if files.is_some() && !is_tcp(&args.listen) {
            return Err(Error::Usage(
                "--tls-cert requires --listen with an address and a port".into(),
            ));
        }
        let tls = files.map(|(certificate, key)| Tls::open(certificate, key)).transpose()?;
        Ok(Door { access: Arc::new(access), tls })
    }

    /// The gate of a listener.
    pub(crate) fn gate(&self, args: &ServeArgs, listener: &Listener) -> Result<Gate, Error> {
        Ok(Gate {
            // A certificate is for the names that its owner uses.
            own_names_only: is_tcp(&args.listen) && args.listen.is_local() && self.tls.is_none(),
            cookie: gate::cookie_name(listener.port()?),
            secure: self.tls.is_some(),
            access: self.access.clone(),
        })
    }
}
