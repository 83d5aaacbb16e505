//! Character sets and collations as SET NAMES takes them.

use crate::quoting::Characters;
use mysql_common::collations::{Collation, CollationId};
use std::borrow::Cow;
use std::sync::Arc;
use wire::CapabilityFlags;
use wire::backend::Backend;
use wire::version::{has_transaction_names, is_mysql_8};

/// The character set and collation that a session talks in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// Those of the collation id that the client logged in with.
    Login(u16),
    /// What followed SET NAMES.
    Set(Arc<str>),
}

impl Names {
    /// What follows SET NAMES to have them on a server.
    pub fn literal(&self, server: &dyn Server) -> Cow<'_, str> {
        match self {
            Self::Set(text) => Cow::Borrowed(text),
            Self::Login(id) => Cow::Owned(login_names(*id, server)),
        }
    }
    /// The characters of texts in them. A server's default is taken for one of plain characters.
    pub fn characters(&self) -> Characters {
        match self {
            Self::Login(id) => Characters::of(Collation::resolve(CollationId::from(*id)).charset()),
            Self::Set(text) => Characters::of(text),
        }
    }
}

/// A login with a collation that the server does not know gets the server's own default, so that is what it has again.
fn login_names(id: u16, server: &dyn Server) -> String {
    let collation = Collation::resolve(CollationId::from(id));
    if collation.id() == CollationId::UNKNOWN_COLLATION_ID || !server.knows_collation(id) {
        return "DEFAULT".to_owned();
    }
    format!("{} COLLATE {}", collation.charset(), collation.collation())
}

/// What must be known of a server to set something on it.
pub trait Server {
    /// Whether the server has the collation of this id.
    fn knows_collation(&self, id: u16) -> bool;
    /// Whether its client logged in with CLIENT_IGNORE_SPACE, which adds IGNORE_SPACE to the global sql_mode.
    fn ignores_space(&self) -> bool;
    /// Whether its variables of transactions are named `transaction_isolation` and so on, not `tx_isolation`.
    fn has_transaction_names(&self) -> bool;
}

impl Server for Backend {
    fn knows_collation(&self, id: u16) -> bool {
        // MySQL 8.0 has added ids from 255 on, MariaDB others from 576 and 2048 on.
        match id {
            255..=575 => is_mysql_8(&self.server_version),
            576.. => self.is_mariadb(),
            _ => true,
        }
    }
    fn ignores_space(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_IGNORE_SPACE)
    }
    fn has_transaction_names(&self) -> bool {
        has_transaction_names(&self.server_version)
    }
}
